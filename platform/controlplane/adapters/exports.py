"""Exports from the wish to their end: asked for, built by leased work, kept for a while, removed.

Writes rows; each function is one transaction, or part of the one that proves a lease. The files lie in the object store as parts
under `exports/EXPORT/SHA256/N`: named by their content, so that sending one again replaces it by itself.
Refuses to know what is in them: the trainer's host writes and names them.
"""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, BinaryIO

from django.db import transaction

from controlplane.adapters import access
from controlplane.adapters.errors import NotExportable
from controlplane.adapters.models import LIVE_EXPORTS, Export, ExportState
from controlplane.core import outbox
from controlplane.core.clock import now
from controlplane.core.errors import Conflict, NotFound
from controlplane.core.objects import store
from controlplane.pools.errors import LeaseTaken
from controlplane.pools.services import GrantedAttempt, grant_lease
from controlplane.teams.actors import Actor
from trainer.contracts.adapters import FileEntry
from trainer.contracts.exports import ExportForm, parts_of

EXPORT_TASK = "exports.start"
KEPT_FOR = timedelta(days=1)
LOST_MAX = 3
ERROR_LENGTH_MAX = 2_000


@transaction.atomic
def request_export(actor: Actor, adapter_id: str, form: ExportForm) -> Export:
    """The adapter's export in that form: the one that there is, kept anew, or one that is queued now."""
    adapter = access.access_adapter(actor, adapter_id, lock=True)
    if adapter.pool_id is None:
        raise NotExportable(f"{adapter.base_model} has no pool here any more, which has the files")
    export = Export.objects.select_for_update().filter(adapter=adapter, form=form, state__in=LIVE_EXPORTS).first()
    if export is None:
        export = Export.objects.create(team_id=adapter.team_id, adapter=adapter, form=form)
        outbox.emit(task=EXPORT_TASK, key=f"export:{export.pk}", payload={"export_id": export.pk})
    elif export.state == ExportState.READY:
        _save(export, expires_at=now() + KEPT_FOR)
    return export


@transaction.atomic
def begin_export(export_id: str) -> GrantedAttempt | None:
    """Lease an export. None when it is being built, has ended, or is gone."""
    export = access.lock_export(export_id)
    if export is None or export.state not in {ExportState.QUEUED, ExportState.BUILDING}:
        return None
    try:
        granted = grant_lease(subject_kind="export", subject_id=export.pk, team_id=export.team_id, pool=export.adapter.pool)
    except LeaseTaken:
        return None
    _save(export, state=ExportState.BUILDING)
    return granted


def expect_part(export: Export, name: str, entry: FileEntry, part: int) -> str:
    """Note that a file is coming in, before any of it is stored, so that whatever is stored is found again. Returns the key."""
    if part >= parts_of(entry.size_bytes):
        raise Conflict(f"{name} of {entry.size_bytes} bytes has no part {part}")
    described = _described(name, entry)
    if described not in export.files:
        _save(export, files=[*export.files, described])
    return _key(export, entry.sha256, part)


def record_files(export: Export, files: Mapping[str, FileEntry]) -> None:
    """Every part has come in: the export can be downloaded until it expires."""
    described = [_described(name, entry) for name, entry in files.items()]
    if missing := [file["name"] for file in described if file not in export.files]:
        raise Conflict(f"no part of {', '.join(missing)} has come in")
    _save(export, state=ExportState.READY, files=described, expires_at=now() + KEPT_FOR)


def record_failure(export: Export, reason: str) -> None:
    _save(export, state=ExportState.FAILED, error=reason[:ERROR_LENGTH_MAX])


def lose_export(export: Export, reason: str) -> None:
    """Its holder was lost: queued again, or failed after too many."""
    lost = export.lost_attempts + 1
    if lost >= LOST_MAX:
        record_failure(export, f"the export was lost {lost} times, last: {reason}")
    else:
        _save(export, state=ExportState.QUEUED, lost_attempts=lost)


def expire_exports() -> int:
    """Remove the files of exports that have expired or failed; returns of how many. What was not removed yet is still listed."""
    Export.objects.filter(state=ExportState.READY, expires_at__lte=now()).update(state=ExportState.EXPIRED)
    over = Export.objects.filter(state__in=(ExportState.EXPIRED, ExportState.FAILED)).exclude(files=[])
    exports = list(over.order_by("created_at")[:100])
    for export in exports:
        for file in export.files:
            for key in _keys(export, file):
                store().delete(key)
        _save(export, files=[])
    return len(exports)


def open_file(export: Export, name: str) -> tuple[BinaryIO, int]:
    """A file of a READY export as a stream, with its size. Raises NotFound."""
    file = next((file for file in export.files if file["name"] == name), None)
    if export.state != ExportState.READY or file is None:
        raise NotFound(f"The export has no file '{name}'.", hint="It is READY for a day; ask for it again.")
    return Parts(_keys(export, file)), file["size_bytes"]  # type: ignore[return-value]


class Parts:
    """The parts of one file, read as one file."""

    def __init__(self, keys: Iterator[str]) -> None:
        self._keys = keys
        self._part: BinaryIO | None = None

    def read(self, size: int = -1) -> bytes:
        while True:
            if self._part is None:
                key = next(self._keys, None)
                if key is None:
                    return b""
                self._part = store().open(key)
            if data := self._part.read(size):
                return data
            self.close()

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        if self._part is not None:
            self._part.close()
            self._part = None


def _described(name: str, entry: FileEntry) -> dict[str, Any]:
    return {"name": name, "sha256": entry.sha256, "size_bytes": entry.size_bytes}


def _keys(export: Export, file: Mapping[str, Any]) -> Iterator[str]:
    return (_key(export, file["sha256"], part) for part in range(parts_of(file["size_bytes"])))


def _key(export: Export, sha256: str, part: int) -> str:
    return f"exports/{export.pk}/{sha256}/{part}"


def _save(export: Export, **changes: Any) -> None:
    for name, value in changes.items():
        setattr(export, name, value)
    export.save(update_fields=list(changes))
