"""The library that is searched, and the two ways of looking into it. Plain functions of text."""

import re
from pathlib import Path

# Stored as text, so that nothing takes the library for code of this package.
FILES: dict[str, str] = {
    path.name.removesuffix(".txt"): path.read_text() for path in sorted((Path(__file__).parent / "library").glob("*.txt"))
}
LINES_MAX = 20
PATTERN_MAX = 80
_DEFINITION = re.compile(r"^\s*(?:def|class)\s+(\w+)|^([A-Z_]+)\s*=", re.MULTILINE)


def grep(pattern: str) -> str:
    """Lines that hold the pattern, as `file:line: text`, at most twenty. The pattern is plain text, whatever its case."""
    wanted = pattern.strip().lower()
    if not wanted or len(wanted) > PATTERN_MAX:
        return f"Say 1 to {PATTERN_MAX} characters."
    found = [
        f"{name}:{number}: {line.strip()}"
        for name, text in FILES.items()
        for number, line in enumerate(text.splitlines(), start=1)
        if wanted in line.lower()
    ]
    return "\n".join(found[:LINES_MAX]) or "No line holds it."


def read(name: str) -> str:
    """A file whole."""
    return FILES.get(name.strip(), f"There is no file {name.strip()!r}. There are: {', '.join(FILES)}.")


def definitions() -> list[tuple[str, str]]:
    """(name, file) of everything that is defined in one file alone."""
    pairs = [(match[1] or match[2], name) for name, text in FILES.items() for match in _DEFINITION.finditer(text)]
    names = [name for name, _ in pairs if not name.startswith("__")]
    return [(name, file) for name, file in pairs if names.count(name) == 1]


def names_file(reply: str, file: str) -> bool:
    """The reply names this file and no other of the library."""
    return [name for name in FILES if name in reply] == [file]
