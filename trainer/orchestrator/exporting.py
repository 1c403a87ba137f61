"""An export: the trainer's host writes the files, this process sends them on in parts, and they are removed where they were.

Knows the order. Refuses to know weights and where the parts are kept. Each part is idempotent, so that an attempt that follows
one that was lost sends all of them again.
"""

import asyncio
import shutil
from pathlib import Path

from trainer.contracts.adapters import FileEntry
from trainer.contracts.events import Component, FailureCode
from trainer.contracts.exports import PART_BYTES, ExportRequest, ExportWritten, parts_of
from trainer.contracts.internal import Finish
from trainer.orchestrator.attempt.endings import failed
from trainer.orchestrator.attempt.services import error_code
from trainer.orchestrator.workplace import Workplace


async def export_version(place: Workplace) -> Finish:
    """Raises AttemptOver and StaleLease."""
    written = await _written(place)
    folder = Path(place.pool.artifact_root) / written.path
    for name, entry in written.files.items():
        place.phase(f"sending {name}")
        await _send(place, folder / name, entry)
    await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
    return Finish(outcome="completed", message=f"{len(written.files)} files were sent", exported=written.files)


async def _written(place: Workplace) -> ExportWritten:
    order = place.spec.export
    if order is None:
        raise failed(FailureCode.INTERNAL, "an attempt of kind export came without an order")
    place.phase("writing the files on the trainer's host", Component.TRAINER)
    request = ExportRequest(export_id=place.spec.subject_id, **order.model_dump())
    response = await place.trainer().call("POST", "/exports", request)
    if response.is_success:
        return ExportWritten.model_validate_json(response.content)
    reason = response.json()["detail"] if error_code(response) else response.text[:2000]
    raise failed(FailureCode.TRAINER_REFUSED, str(reason))


async def _send(place: Workplace, path: Path, entry: FileEntry) -> None:
    with path.open("rb") as file:
        for part in range(parts_of(entry.size_bytes)):
            data = await asyncio.to_thread(file.read, PART_BYTES)
            await place.control.export_part(path.name, part, entry, data)
