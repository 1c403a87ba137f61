"""What `prime push` packs and how it is hashed: one rule for push, pull, status and server (wire: env push)."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

SKIPPED_FOLDERS = frozenset({"__pycache__", "dist", "build", "outputs"})


def source_files(root: Path) -> list[Path]:
    """Regular files of a source archive, sorted by relative path: at the root README.md, pyproject.toml and *.py; below it
    every file of every folder that is neither hidden nor generated. Links are never followed."""
    found = []
    for path in sorted(root.rglob("*"), key=lambda path: path.relative_to(root).as_posix()):
        relative = path.relative_to(root)
        if path.is_symlink() or not path.is_file() or any(_skipped(part) for part in relative.parts):
            continue
        if len(relative.parts) > 1 or path.suffix == ".py" or path.name in {"README.md", "pyproject.toml"}:
            found.append(path)
    return found


def _skipped(part: str) -> bool:
    return part.startswith(".") or part in SKIPPED_FOLDERS or part.endswith(".egg-info")


class ContentHash:
    """SHA-256 over, per file, the bytes `file:` + relative path + content, fed file by file and chunk by chunk. Modification
    times and owners do not count."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def begin(self, name: str) -> None:
        self._digest.update(f"file:{name}".encode())

    def feed(self, chunk: bytes) -> None:
        self._digest.update(chunk)

    def hexdigest(self) -> str:
        return self._digest.hexdigest()


def content_hash(entries: Iterable[tuple[str, bytes]]) -> str:
    """The hash of files given in any order: they are sorted by path."""
    hashed = ContentHash()
    for name, content in sorted(entries):
        hashed.begin(name)
        hashed.feed(content)
    return hashed.hexdigest()


def tree_hash(root: Path) -> str:
    """Content hash of the source files below `root`."""
    return content_hash((path.relative_to(root).as_posix(), path.read_bytes()) for path in source_files(root))
