"""Files that are either whole or absent, and folders that exist once their manifest does.

Knows bytes, digests and fsync. Refuses to know what the bytes mean.
"""

import hashlib
import os
import re
import secrets
import shutil
from pathlib import Path

from trainer.contracts.adapters import MANIFEST_NAME, FileEntry


def entry_of(data: bytes) -> FileEntry:
    return FileEntry(sha256=hashlib.sha256(data).hexdigest(), size_bytes=len(data))


_TEMPORARY = re.compile(r"^\..+\.[0-9a-f]{8}$")


def write_file(path: Path, data: bytes) -> None:
    """Replace `path` by a complete, synced file, or leave it as it was."""
    _make_folder(path.parent)
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_folder(path.parent)


def write_folder(folder: Path, files: dict[str, bytes], manifest: bytes) -> None:
    """Write the files, then the manifest that makes them visible. A reader who finds the manifest finds everything."""
    for name, data in files.items():
        write_file(folder / name, data)
    write_file(folder / MANIFEST_NAME, manifest)


def read_verified(folder: Path, name: str, entry: FileEntry) -> bytes:
    """Raises ValueError when the bytes are not those that the manifest names."""
    data = (folder / name).read_bytes()
    if entry_of(data) != entry:
        raise ValueError(f"{folder.name}/{name} is not the file that its manifest names")
    return data


def sweep_temporaries(folder: Path, *, below: bool = True) -> None:
    """Remove what a process that was killed in `write_file` left in `folder` and `below`. Only for whoever alone writes there."""
    for path in list(folder.rglob(".*") if below else folder.glob(".*")):
        if _TEMPORARY.match(path.name) and path.is_file():
            path.unlink(missing_ok=True)


def remove_folder(folder: Path) -> None:
    """Remove a committed folder, its manifest first: whoever finds the manifest still finds everything."""
    (folder / MANIFEST_NAME).unlink(missing_ok=True)
    if folder.exists():
        _sync_folder(folder)
        shutil.rmtree(folder)


def _make_folder(folder: Path) -> None:
    """The folder and those above it, each one durable in the one that holds it."""
    if not folder.exists():
        _make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        _sync_folder(folder.parent)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
