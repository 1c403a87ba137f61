"""Adapter versions written out for use elsewhere, one at a time, in a process of their own (`trainer.core.export`).

Knows folders, processes and exit codes: merging takes as much memory as the base model, which must not lie in the process that
trains. Refuses to know weights.
"""

import asyncio
import hashlib
import shutil
import sys
from contextlib import suppress
from pathlib import Path

from trainer.contracts.adapters import FileEntry
from trainer.contracts.exports import ExportRequest, ExportWritten, export_path
from trainer.core.errors import NotExportable

ERROR_LENGTH_MAX = 2_000


class Exporter:
    def __init__(self, root: Path) -> None:
        self._root = root
        self._turn = asyncio.Lock()

    async def export(self, request: ExportRequest) -> ExportWritten:
        """Write the files, or find them. Raises NotExportable."""
        version = (self._root / request.adapter_path).resolve()
        if not version.is_relative_to(self._root.resolve()):
            raise NotExportable(f"adapter_path: {request.adapter_path!r} lies outside the artifact root")
        path = export_path(request.export_id)
        async with self._turn:
            if not (self._root / path).exists():
                await _run(version, self._root / path, request)
            files = await asyncio.to_thread(_entries, self._root / path)
        return ExportWritten(path=path, files=files)


async def _run(version: Path, target: Path, request: ExportRequest) -> None:
    for left in target.parent.glob(f".{target.name}.*"):  # by a process that was killed
        await asyncio.to_thread(shutil.rmtree, left, ignore_errors=True)
    words = [str(version), "--to", str(target), "--size-max", str(request.size_max)]
    words += ["--merged"] if request.form == "merged" else []
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "trainer.core.export", *words, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
    )
    try:
        _, told = await process.communicate()
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if process.returncode:
        text = told.decode(errors="replace").strip()[-ERROR_LENGTH_MAX:]
        raise NotExportable(text or f"the export ended with exit code {process.returncode}")


def _entries(folder: Path) -> dict[str, FileEntry]:
    return {path.name: _entry(path) for path in sorted(folder.iterdir())}


def _entry(path: Path) -> FileEntry:
    with path.open("rb") as file:
        return FileEntry(sha256=hashlib.file_digest(file, "sha256").hexdigest(), size_bytes=path.stat().st_size)
