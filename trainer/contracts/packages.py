"""What `prime push` packs and how it is hashed: one rule for push, pull, status and server (wire: env push).

Knows paths and bytes. Refuses to know archives: whoever reads one hands over its files, in any order.
"""

import hashlib
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pathspec import GitIgnoreSpec

SKIPPED_FOLDERS = frozenset({"__pycache__", "dist", "build", "outputs"})
READ_BYTES = 2**20


def source_files(root: Path) -> list[Path]:
    """Regular files of a source archive, sorted by relative path: at the root README.md, pyproject.toml and *.py; below it
    every file of every folder. What is hidden, generated or named by the root's `.gitignore` is left out. Links are never
    followed."""
    return sorted(_found(root, root, _ignored_by(root)), key=lambda path: path.relative_to(root).as_posix())


def _ignored_by(root: Path) -> GitIgnoreSpec:
    """The rules of the root's `.gitignore`, as git reads them; those of folders below do not count."""
    rules = root / ".gitignore"
    lines = rules.read_text(encoding="utf-8", errors="replace").splitlines() if rules.is_file() else []
    return GitIgnoreSpec.from_lines(lines)


def _found(root: Path, folder: Path, ignored: GitIgnoreSpec) -> Iterator[Path]:
    """A folder that is left out is not entered, so that no rule brings back a file of it."""
    for path in folder.iterdir():
        name = path.relative_to(root).as_posix()
        if path.name.startswith(".") or path.is_symlink():
            continue
        if path.is_dir():
            if not _is_generated(path.name) and not ignored.match_file(f"{name}/"):
                yield from _found(root, path, ignored)
        elif path.is_file() and not ignored.match_file(name) and (folder != root or _counts_at_the_root(path)):
            yield path


def _counts_at_the_root(path: Path) -> bool:
    return path.suffix == ".py" or path.name in {"README.md", "pyproject.toml"}


def _is_generated(folder: str) -> bool:
    return folder in SKIPPED_FOLDERS or folder.endswith(".egg-info")


def content_hash(files: Mapping[str, Iterable[bytes]]) -> str:
    """SHA-256 over, per file in the order of their paths, the bytes `file:` + relative path + content. `files`: the chunks of
    each file by its path. Order, modification times and owners do not count."""
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"file:{name}".encode())
        for chunk in files[name]:
            digest.update(chunk)
    return digest.hexdigest()


def folder_hash(files: Mapping[str, Iterable[bytes]]) -> str:
    """The other hash of the public client, by which it tells whether a folder is ahead of its release: folders at the root
    count by name, and paths are sorted without regard to case."""
    folders = {name.partition("/")[0] for name in files if "/" in name}
    digest = hashlib.sha256()
    for name in sorted([*files, *folders], key=str.lower):
        digest.update(f"{'dir' if name in folders else 'file'}:{name}".encode())
        for chunk in files.get(name, ()):
            digest.update(chunk)
    return digest.hexdigest()


def allows_prereleases(pyproject: str) -> bool:
    """Whether a project takes pre-releases of what it depends on: `prerelease = "allow"` under `[tool.uv]`, uv's own setting."""
    try:
        tool = tomllib.loads(pyproject).get("tool")
    except tomllib.TOMLDecodeError:
        return False
    uv = tool.get("uv") if isinstance(tool, dict) else None
    return isinstance(uv, dict) and uv.get("prerelease") == "allow"


def tree_hash(root: Path) -> str:
    """Content hash of the source files below `root`."""
    return content_hash({path.relative_to(root).as_posix(): _chunks(path) for path in source_files(root)})


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as stream:
        while chunk := stream.read(READ_BYTES):
            yield chunk
