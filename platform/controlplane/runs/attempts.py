"""What the internal API asks about attempts on runs (`pools.subjects.Subject`). Translates; decides nothing itself."""

from controlplane.adapters.services import record_version
from controlplane.core.sealing import unseal
from controlplane.hub.access import release_by_id
from controlplane.hub.queries import release_spec
from controlplane.pools.bodies import StoredBody
from controlplane.pools.models import Lease
from controlplane.pools.orders import orders_of
from controlplane.runs import access, lifecycle, reports
from controlplane.runs.datasets import dataset_specs
from controlplane.runs.models import Run
from controlplane.runs.replays import replay_specs
from trainer.contracts.catalogue import load_catalogue
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
from trainer.contracts.run_config import RunConfig


class RunSubject:
    """A run as something that is leased."""

    def lock(self, subject_id: str) -> Run | None:
        return access.lock_run(subject_id)

    def attempt_spec(self, row: Run, lease: Lease) -> AttemptSpec:
        return AttemptSpec(
            **orders_of(lease),
            base_model=load_catalogue()[row.base_model],
            run=RunConfig.model_validate(row.config),
            releases=[release_spec(release_by_id(release_id)) for release_id in row.releases],
            teachers=row.teachers,
            seats=row.seats,
            replays=replay_specs(row),
            datasets=dataset_specs(row),
            init_from=row.init_from or None,
            position=row.forked_from["position"] if row.forked_from else None,
            resume_step=row.step,
            secrets=unseal(row.sealed_secrets),
        )

    def release_ids(self, row: Run) -> list[str]:
        return list(row.releases)

    def billed_model(self, row: Run) -> str:
        return row.base_model

    def on_heartbeat(self, row: Run, lease: Lease, beat: Heartbeat) -> HeartbeatReply:
        return lifecycle.heed_heartbeat(row, beat)

    def on_events(self, row: Run, lease: Lease, batch: EventBatch) -> int:
        return reports.record_events(row, lease, batch)

    def on_rollouts(self, row: Run, lease: Lease, batch: RolloutBatch, body: StoredBody) -> int:
        return reports.record_rollouts(row, lease, batch, body)

    def on_version(self, row: Run, lease: Lease, report: VersionReport) -> None:
        record_version(row, report)

    def on_checkpoint(self, row: Run, lease: Lease, report: CheckpointReport) -> None:
        reports.record_checkpoint(row, report)

    def on_finish(self, row: Run, lease: Lease, report: Finish) -> None:
        lifecycle.finish_run(row, report)

    def on_lost(self, row: Run, lease: Lease) -> None:
        lifecycle.lose_attempt(row, lease.end_reason)
