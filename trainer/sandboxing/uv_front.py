"""`uv` as a sandbox finds it: scripts whose packages were installed with the release run with those, all else is uv's own affair.

Knows the metadata block of single-file scripts (PEP 723) and the three calls that run one: `uv run`, `uv sync --script` and
`uv python find --script`. Refuses to install: a sandbox has no network. A copy of this file is `bin/uv` of releases that bring
scripts; it runs by itself and imports the standard library alone.
"""

import hashlib
import os
import re
import shutil
import sys
from pathlib import Path

ENVIRONMENTS = "scripts"
"""Folder beside `bin`; below it an environment for each block, named by the block's digest."""
_BLOCK = re.compile(r"(?m)^# /// script\r?$\s(?P<content>(^#(| .*)\r?$\s)+)^# ///\r?$")
_FLAGS = frozenset({"--script", "-s", "--offline", "--quiet", "-q", "--no-config", "--no-project", "--isolated"})
_FLAGS |= {"--frozen", "--locked", "--exact", "--no-progress", "--no-sync"}
_WITH_VALUE = frozenset({"--python", "-p", "--cache-dir", "--color"})


def blocks(text: str) -> list[str]:
    """The TOML of each metadata block, in a script or in a text that holds scripts."""
    found = (match.group("content").splitlines() for match in _BLOCK.finditer(text))
    return ["\n".join(line.removeprefix("#").removeprefix(" ") for line in lines) for lines in found]


def digest(block: str) -> str:
    """What names a block's environment: whatever the script does, its packages are the same."""
    return hashlib.sha256(block.encode()).hexdigest()


def prepared_interpreter(script: str, environments: Path) -> Path | None:
    """The interpreter that has the script's packages, or None for a script that did not come with the release."""
    try:
        found = blocks(Path(script).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    python = environments / digest(found[0]) / "bin" / "python" if len(found) == 1 else None
    return python if python is not None and python.exists() else None


def asked_script(arguments: list[str]) -> tuple[str, str, list[str]] | None:
    """(`run`, `sync` or `find`, script, its arguments) of a call of uv; None where it asks for anything else."""
    rest = _without_options(arguments)
    if rest[:1] == ["run"]:
        operands = _without_options(rest[1:])
        return ("run", operands[0], operands[1:]) if operands and not operands[0].startswith("-") else None
    for verb, words in (("sync", ["sync"]), ("find", ["python", "find"])):
        if rest[: len(words)] == words and "--script" in rest[:-1]:
            return verb, rest[rest.index("--script") + 1], []
    return None


def _without_options(arguments: list[str]) -> list[str]:
    """From the first word on that is no option that leaves the choice of packages alone."""
    at = 0
    while at < len(arguments) and (arguments[at] in _FLAGS or arguments[at] in _WITH_VALUE):
        at += 2 if arguments[at] in _WITH_VALUE else 1
    return arguments[at:]


def main() -> None:
    here = Path(__file__).parent
    asked = asked_script(sys.argv[1:])
    python = prepared_interpreter(asked[1], here.parent / ENVIRONMENTS) if asked else None
    if asked is None or python is None:
        _hand_over(here)
    elif asked[0] == "find":
        print(python)
    elif asked[0] == "run":
        os.environ |= {"VIRTUAL_ENV": str(python.parent.parent), "PATH": f"{python.parent}:{os.environ.get('PATH', '')}"}
        os.execv(python, [str(python), asked[1], *asked[2]])


def _hand_over(here: Path) -> None:
    """To the uv behind this one on PATH."""
    folders = [folder for folder in os.environ.get("PATH", "").split(":") if folder and Path(folder) != here]
    uv = shutil.which("uv", path=":".join(folders))
    if uv is None:
        sys.exit("uv: this sandbox runs the scripts that came with the release, and nothing else")
    os.execv(uv, [uv, *sys.argv[1:]])


if __name__ == "__main__":
    main()
