"""What a run's holder reports, written down once each: events, rollouts, checkpoints.

Runs inside the transaction that proves the lease, with the run locked. A report that comes twice changes nothing.
"""

from datetime import datetime
from typing import Any

from controlplane.pools.bodies import StoredBody
from controlplane.pools.masking import masker
from controlplane.pools.models import Lease
from controlplane.runs.history import append_event, save_history
from controlplane.runs.lifecycle import start_running
from controlplane.runs.models import Checkpoint, Rollout, RolloutStep, Run, RunEvent, RunMetric
from trainer.contracts.events import EventKind, RunState
from trainer.contracts.internal import CheckpointReport, EventBatch, EventIn, RolloutBatch, RolloutSummary


def record_events(run: Run, lease: Lease, batch: EventBatch) -> int:
    """Append the events that are new, in the order of their sequence. Returns how many were."""
    known = RunEvent.objects.filter(run=run, attempt=lease.attempt, sequence__in=[event.sequence for event in batch.events])
    seen = set(known.values_list("sequence", flat=True))
    mask = masker(run.sealed_secrets)
    fresh = {event.sequence: event for event in batch.events if event.sequence not in seen}
    for _, event in sorted(fresh.items()):
        _record_event(run, event, mask(event.payload))
    if fresh:
        save_history(run)
    return len(fresh)


def _record_event(run: Run, event: EventIn, payload: dict[str, Any]) -> None:
    if event.kind is EventKind.STATE:
        _heed_reported_state(run, payload)
    append_event(run, event.kind, payload, step=event.step, at=event.at, sequence=event.sequence)
    if event.kind is EventKind.STEP and event.step is not None:
        start_running(run)
        _record_step(run, event.step, event, payload)


def _heed_reported_state(run: Run, payload: dict[str, Any]) -> None:
    """A holder may say that it is working; every other state is reached by its finish report or by us."""
    if payload.get("state") == RunState.RUNNING:
        start_running(run)


def _record_step(run: Run, step: int, event: EventIn, payload: dict[str, Any]) -> None:
    """The step's numbers become the current ones. What earlier attempts reported from this step on belongs to a branch that
    this attempt left when it resumed: it stays, folded."""
    others = RunMetric.objects.filter(run=run, step__gte=step, superseded_by__isnull=True).exclude(attempt=run.attempt)
    others.update(superseded_by=run.attempt)
    told = {"version": payload.get("version"), "adapter_digest": payload.get("adapter_digest") or ""}
    keep_numbers(run, step, payload.get("metrics", {}), event.at, **told)
    run.step, run.lost_attempts = step, 0


def keep_numbers(run: Run, step: int, values: dict[str, Any], at: datetime, **told: Any) -> None:
    """The numbers of one step of the present attempt; `told` are columns of which not every holder knows."""
    columns = {"team_id": run.team_id, "segment": run.segment, "values": values, "at": at}
    RunMetric.objects.update_or_create(run=run, step=step, attempt=run.attempt, defaults=columns | told)


def record_rollouts(run: Run, lease: Lease, batch: RolloutBatch, body: StoredBody) -> int:
    """Keep one step's rollouts. The same attempt's second report is ignored; a later attempt's replaces the step's rows."""
    earlier = RolloutStep.objects.filter(run=run, step=batch.step, tag=batch.tag).first()
    if earlier is not None and earlier.attempt == lease.attempt:
        return 0
    if earlier is not None:
        earlier.delete()
    start_running(run)
    save_history(run)
    keep_rollouts(run, step=batch.step, tag=batch.tag, summaries=batch.summaries, body=body)
    return len(batch.summaries)


def keep_rollouts(run: Run, *, step: int, tag: str, summaries: list[RolloutSummary], body: StoredBody) -> None:
    """Rollouts of a step and tag that has none yet, as the present attempt's."""
    rollout_step = RolloutStep.objects.create(
        run=run,
        team_id=run.team_id,
        step=step,
        tag=tag,
        attempt=run.attempt,
        body_key=body.key,
        body_sha256=body.sha256,
        size_bytes=body.size_bytes,
        rollouts_count=len(summaries),
    )
    Rollout.objects.bulk_create(_rollout_rows(run, rollout_step, summaries), batch_size=500)


def _rollout_rows(run: Run, rollout_step: RolloutStep, summaries: list[RolloutSummary]) -> list[Rollout]:
    mask = masker(run.sealed_secrets)
    return [
        Rollout(
            rollout_step=rollout_step,
            team_id=run.team_id,
            position=position,
            state=summary.state,
            reward=summary.reward,
            advantage=summary.advantage,
            summary=mask(summary.model_dump(mode="json")),
        )
        for position, summary in enumerate(summaries)
    ]


def record_checkpoint(run: Run, report: CheckpointReport) -> None:
    """A checkpoint that is reported again changes nothing; after a replay it has the same place and, maybe, other bytes."""
    if Checkpoint.objects.filter(run=run, step=report.step, digest=report.digest).exists():
        return
    Checkpoint.objects.update_or_create(
        run=run,
        step=report.step,
        defaults={"team_id": run.team_id, "path": report.path, "digest": report.digest, "size_bytes": report.size_bytes}
        | {"position": report.position and report.position.model_dump(mode="json"), "retired_at": None, "removed_at": None},
    )
    append_event(run, EventKind.CHECKPOINT, {"path": report.path, "digest": report.digest}, step=report.step)
    save_history(run)
