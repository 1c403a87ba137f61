"""How an evaluation changes: a legal transition and its log line, in the caller's transaction, under the evaluation's lock."""

from datetime import datetime
from typing import Any

from controlplane.core.clock import now
from controlplane.evals.models import EvalStatus, Evaluation, EvaluationEvent
from controlplane.evals.states import is_terminal, may_follow
from trainer.contracts.events import EventKind, FailureCode


class IllegalTransition(RuntimeError):
    """A programming error: services check what a user may ask for before they move an evaluation."""


def append_event(
    evaluation: Evaluation, kind: EventKind, payload: dict[str, Any], *, at: datetime | None = None, sequence: int | None = None
) -> None:
    """Add one line. `sequence` is the holder's own count, for reports alone. The caller saves the evaluation."""
    evaluation.events_count += 1
    EvaluationEvent.objects.create(
        evaluation=evaluation,
        team_id=evaluation.team_id,
        seq=evaluation.events_count,
        attempt=evaluation.attempt,
        sequence=sequence,
        kind=kind,
        at=at or now(),
        payload=payload,
    )


def move(evaluation: Evaluation, status: EvalStatus, *, reason: str = "", code: FailureCode | None = None) -> None:
    before = EvalStatus(evaluation.status)
    if not may_follow(before, status):
        raise IllegalTransition(f"{before} -> {status}")
    evaluation.status = status
    if status is EvalStatus.RUNNING:
        evaluation.started_at = evaluation.started_at or now()
    if is_terminal(status):
        evaluation.finished_at = now()
    append_event(evaluation, EventKind.STATE, {"state": status, "reason": reason} | ({"code": code} if code else {}))


def save_history(evaluation: Evaluation) -> None:
    evaluation.updated_at = now()
    evaluation.save()
