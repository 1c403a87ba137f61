"""What the internal API asks about attempts on hosted evaluations (`pools.subjects.Subject`)."""

from typing import Any

from controlplane.core.errors import Invalid
from controlplane.core.sealing import unseal
from controlplane.evals import access, lifecycle
from controlplane.evals.external import external_of
from controlplane.evals.history import append_event, save_history
from controlplane.evals.models import Evaluation, EvaluationEvent
from controlplane.evals.samples import reported_row, settled_pairs, store_samples
from controlplane.hub.access import release_by_id
from controlplane.hub.queries import release_spec
from controlplane.pools.bodies import StoredBody
from controlplane.pools.masking import masker
from controlplane.pools.models import Lease
from controlplane.pools.orders import orders_of
from trainer.contracts.catalogue import load_catalogue
from trainer.contracts.internal import (
    AttemptSpec,
    CheckpointReport,
    EventBatch,
    Finish,
    Heartbeat,
    HeartbeatReply,
    RolloutBatch,
    RolloutSummary,
    ServedModel,
    VersionReport,
)
from trainer.contracts.run_config import EvalConfig


class EvalSubject:
    """A hosted evaluation as something that is leased. It trains nothing: versions and checkpoints are refused."""

    def lock(self, subject_id: str) -> Evaluation | None:
        return access.lock_evaluation(subject_id)

    def attempt_spec(self, row: Evaluation, lease: Lease) -> AttemptSpec:
        secrets = unseal(row.sealed_secrets)
        external = external_of(row, secrets)
        return AttemptSpec(
            **orders_of(lease),
            base_model=load_catalogue()[row.base_model],
            eval=EvalConfig.model_validate(row.config),
            served_model=ServedModel.model_validate(row.served_model),
            done=settled_pairs(row),
            seats=[row.seats] if row.seats else [],
            releases=[release_spec(release_by_id(row.release_id))],
            external=external,
            secrets=secrets,
        )

    def release_ids(self, row: Evaluation) -> list[str]:
        return [row.release_id]

    def billed_model(self, row: Evaluation) -> str:
        return row.base_model

    def on_heartbeat(self, row: Evaluation, lease: Lease, beat: Heartbeat) -> HeartbeatReply:
        return lifecycle.heed_heartbeat(row, beat)

    def on_events(self, row: Evaluation, lease: Lease, batch: EventBatch) -> int:
        known = EvaluationEvent.objects.filter(evaluation=row, attempt=lease.attempt)
        seen = set(known.filter(sequence__in=[event.sequence for event in batch.events]).values_list("sequence", flat=True))
        fresh = {event.sequence: event for event in batch.events if event.sequence not in seen}
        mask = masker(row.sealed_secrets)
        for _, event in sorted(fresh.items()):
            append_event(row, event.kind, mask(event.payload), at=event.at, sequence=event.sequence)
        if fresh:
            save_history(row)
        return len(fresh)

    def on_rollouts(self, row: Evaluation, lease: Lease, batch: RolloutBatch, body: StoredBody) -> int:
        mask = masker(row.sealed_secrets)
        rows = [reported_row(row, summary) for summary in batch.summaries]
        for sample, summary in zip(rows, batch.summaries, strict=True):
            sample.attempt, sample.step, sample.tag, sample.body_key = lease.attempt, batch.step, batch.tag, body.key
            sample.data = mask(_as_sample(summary))
        added = store_samples(row, rows)
        save_history(row)
        return added

    def on_version(self, row: Evaluation, lease: Lease, report: VersionReport) -> None:
        raise Invalid(("body",), "an evaluation has no adapter versions")

    def on_checkpoint(self, row: Evaluation, lease: Lease, report: CheckpointReport) -> None:
        raise Invalid(("body",), "an evaluation has no checkpoints")

    def on_finish(self, row: Evaluation, lease: Lease, report: Finish) -> None:
        lifecycle.finish_evaluation(row, report)

    def on_lost(self, row: Evaluation, lease: Lease) -> None:
        lifecycle.lose_attempt(row, lease.end_reason)


def _as_sample(summary: RolloutSummary) -> dict[str, Any]:
    """A rollout under the names that pushed samples use, beside its own."""
    return summary.model_dump(mode="json") | {"example_id": summary.task, "task": summary.task_key or str(summary.task)}
