"""Single-file scripts of a release (PEP 723): tools and graders that `uv run` starts, each with packages of its own.

Knows how a wheel holds them, how their packages are locked, and the folder where they are installed, so that a sandbox without
network runs them. Refuses to run them. In a release's lock each has a part of its own behind a line `# uv script DIGEST FILE`.
"""

import re
import shutil
import tomllib
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from trainer.sandboxing import uv_front
from trainer.sandboxing.base_venv import BaseVenv
from trainer.sandboxing.uv import InstallFailed, run_uv
from trainer.sandboxing.wheels import ReleaseRefused, check_lock

SCRIPTS_MAX = 32
_FILE_BYTES_MAX = 1 << 20
_HEADER = re.compile(r"(?m)^# uv script (?P<digest>[0-9a-f]{64}) .*$\n?")
_SHEBANG = "#!/usr/bin/env -S python3 -I\n"
_STEP_S = 60.0
_RESOLVE_S = 300.0

Install = Callable[[Path, list[str]], None]
"""Puts what the options name into a folder of packages."""


@dataclass(frozen=True, slots=True)
class UvScript:
    """`file` is its member of the wheel; scripts of the same block share an environment."""

    file: str
    digest: str
    dependencies: tuple[str, ...]
    exclude_newer: str = ""


def find_scripts(wheels: Iterable[Path], python_version: tuple[int, int, int]) -> list[UvScript]:
    """The scripts of wheels whose archives have been checked, one for each block. ReleaseRefused names the file."""
    found: dict[str, UvScript] = {}
    for file, text in (member for wheel in wheels for member in _texts(wheel)):
        for block in uv_front.blocks(text):
            found.setdefault(uv_front.digest(block), _script(file, block, python_version))
    if len(found) > SCRIPTS_MAX:
        raise ReleaseRefused(f"it has {len(found)} uv scripts with packages of their own, at most {SCRIPTS_MAX} are installed")
    return list(found.values())


def _texts(wheel: Path) -> Iterator[tuple[str, str]]:
    """Its members that may hold a block, with their names."""
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            if not member.is_dir() and member.file_size <= _FILE_BYTES_MAX and ".dist-info/" not in member.filename:
                yield member.filename, archive.read(member).decode("utf-8", errors="replace")


def _script(file: str, block: str, python_version: tuple[int, int, int]) -> UvScript:
    try:
        said = tomllib.loads(block)
        _check_python(said.get("requires-python", ""), python_version)
        dependencies = tuple(_dependency(text) for text in said.get("dependencies", []))
        exclude_newer = _exclude_newer(said.get("tool", {}).get("uv", {}))
    except (ValueError, TypeError, AttributeError) as error:
        raise ReleaseRefused(f"uv script {file}: {error}") from error
    return UvScript(file, uv_front.digest(block), dependencies, exclude_newer)


def _check_python(wanted: str, python_version: tuple[int, int, int]) -> None:
    version = ".".join(map(str, python_version))
    try:
        fits = version in SpecifierSet(wanted)
    except InvalidSpecifier as error:
        raise ValueError(f"requires-python {wanted!r} is no version specifier") from error
    if not fits:
        raise ValueError(f"it asks for Python {wanted}; the runner has {version}")


def _dependency(text: Any) -> str:
    try:
        requirement = Requirement(text)
    except InvalidRequirement as error:
        raise ValueError(f"its dependency {text!r} is invalid: {error}") from error
    if requirement.url:
        raise ValueError(f"its dependency {text!r} is named by address, which is not allowed")
    return str(requirement)


def _exclude_newer(settings: dict[str, Any]) -> str:
    """The one setting of uv that a script may bring: the others name places and ways to build."""
    if other := sorted(settings.keys() - {"exclude-newer"}):
        raise ValueError(f"tool.uv.{other[0]} is not supported; packages come from the package index alone")
    return str(settings.get("exclude-newer", ""))


def split_lock(lock: str) -> tuple[str, dict[str, str]]:
    """The part of the release itself, and that of each script by its digest. ReleaseRefused for a part that is no lock."""
    own, *rest = _HEADER.split(lock)
    parts = dict(zip(rest[::2], rest[1::2], strict=True))
    for part in (own, *parts.values()):
        check_lock(part)
    return own.strip(), {digest: part.strip() for digest, part in parts.items()}


def joined_lock(own: str, scripts: Sequence[UvScript], parts: dict[str, str]) -> str:
    headed = [f"# uv script {script.digest} {script.file}\n{parts[script.digest]}" for script in scripts]
    return "\n".join(part for part in (own, *headed) if part).strip()


def lock_script(script: UvScript, base: BaseVenv, scratch: Path) -> str:
    """A lock of the script's packages, wheels only. ReleaseRefused names the script and what it asks for."""
    if not script.dependencies:
        return ""
    wanted = scratch / "script.in"
    wanted.write_text("\n".join(script.dependencies))
    options = ["--python", str(base.python), "--only-binary", ":all:", "--generate-hashes", "--no-annotate", "--no-header"]
    options += ["--exclude-newer", script.exclude_newer] if script.exclude_newer else []
    try:
        return run_uv(["pip", "compile", *options, str(wanted)], deadline_s=_RESOLVE_S).strip()
    except InstallFailed as error:
        asked = ", ".join(script.dependencies)
        raise ReleaseRefused(f"uv script {script.file}: its dependencies {asked} cannot be installed: {error}") from error
    finally:
        wanted.unlink()


def install_scripts(release: Path, base: BaseVenv, scripts: Sequence[UvScript], parts: dict[str, str], install: Install) -> None:
    """An environment for each script below `release`, and `bin/uv` that finds them."""
    if not scripts:
        return
    for script in scripts:
        environment = release / uv_front.ENVIRONMENTS / script.digest
        interpreter = str(base.python.resolve())
        run_uv(["venv", "--offline", "--no-project", "--python", interpreter, str(environment)], deadline_s=_STEP_S)
        packages = environment / base.site_packages.relative_to(base.path)
        shutil.rmtree(packages)  # as for the release itself: some versions of uv put start-up files there
        packages.mkdir()
        if parts[script.digest]:
            lock = environment / "requirements.lock"
            lock.write_text(parts[script.digest])
            install(packages, ["--require-hashes", "-r", str(lock)])
    front = release / "bin" / "uv"
    front.write_text(_SHEBANG + Path(uv_front.__file__).read_text())
    front.chmod(0o755)
