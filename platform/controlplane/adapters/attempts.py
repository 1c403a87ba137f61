"""What the internal API asks about attempts on exports (`pools.subjects.Subject`). Translates; decides nothing itself."""

from controlplane.adapters import access, exports
from controlplane.adapters.models import Export
from controlplane.core.errors import Conflict
from controlplane.pools.bodies import StoredBody
from controlplane.pools.models import Lease
from controlplane.pools.orders import orders_of
from controlplane.pools.services import LEASE_S
from trainer.contracts.catalogue import load_catalogue
from trainer.contracts.events import FailureCode
from trainer.contracts.exports import ExportOrder
from trainer.contracts.internal import (
    AttemptSpec,
    CheckpointReport,
    EventBatch,
    Finish,
    Heartbeat,
    HeartbeatReply,
    RolloutBatch,
    VersionReport,
)

NOT_OURS = "An export trains nothing."


class ExportSubject:
    """An export as something that is leased."""

    def lock(self, subject_id: str) -> Export | None:
        return access.lock_export(subject_id)

    def attempt_spec(self, row: Export, lease: Lease) -> AttemptSpec:
        return AttemptSpec(
            **orders_of(lease),
            base_model=load_catalogue()[row.adapter.base_model],
            releases=[],
            export=ExportOrder.model_validate({"adapter_path": row.adapter.path, "form": row.form}),
        )

    def release_ids(self, row: Export) -> list[str]:
        return []

    def billed_model(self, row: Export) -> str:
        return row.adapter.base_model

    def on_heartbeat(self, row: Export, lease: Lease, beat: Heartbeat) -> HeartbeatReply:
        return HeartbeatReply(desired="run", lease_s=LEASE_S)

    def on_events(self, row: Export, lease: Lease, batch: EventBatch) -> int:
        """An export has no event log: what went wrong is its error."""
        return len(batch.events)

    def on_rollouts(self, row: Export, lease: Lease, batch: RolloutBatch, body: StoredBody) -> int:
        raise Conflict(NOT_OURS)

    def on_version(self, row: Export, lease: Lease, report: VersionReport) -> None:
        raise Conflict(NOT_OURS)

    def on_checkpoint(self, row: Export, lease: Lease, report: CheckpointReport) -> None:
        raise Conflict(NOT_OURS)

    def on_finish(self, row: Export, lease: Lease, report: Finish) -> None:
        if report.outcome == "completed" and report.exported:
            exports.record_files(row, report.exported)
        elif report.code == FailureCode.TRAINER_UNREACHABLE:
            exports.lose_export(row, report.message)
        else:
            exports.record_failure(row, report.message or "the export ended without files")

    def on_lost(self, row: Export, lease: Lease) -> None:
        exports.lose_export(row, lease.end_reason or "the process was lost")
