"""How an evaluation changes: a legal transition and its log line, in the caller's transaction, under the evaluation's lock."""

from datetime import datetime
from typing import Any

from controlplane.core.clock import now
from controlplane.evals.models import EvalStatus, Evaluation, EvaluationEvent
from controlplane.evals.states import is_terminal, may_follow
from controlplane.webhooks.models import EventType
from controlplane.webhooks.publishing import page_url, publish
from trainer.contracts.events import EventKind, FailureCode

TOLD_STATUSES = {
    EvalStatus.COMPLETED: EventType.EVALUATION_COMPLETED,
    EvalStatus.FAILED: EventType.EVALUATION_FAILED,
    EvalStatus.TIMEOUT: EventType.EVALUATION_FAILED,
    EvalStatus.CANCELLED: EventType.EVALUATION_CANCELLED,
}
"""What webhooks are told of."""


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
    _tell_webhooks(evaluation, reason=reason, code=code)


def _tell_webhooks(evaluation: Evaluation, *, reason: str, code: FailureCode | None) -> None:
    event = TOLD_STATUSES.get(EvalStatus(evaluation.status))
    if event is not None:
        facts = {"evaluation_id": evaluation.id, "name": evaluation.name, "status": evaluation.status}
        figures = {"model": evaluation.model_name, "reward_mean": evaluation.avg_score}
        why = {"reason": reason, "code": code or "", "url": page_url(f"/evaluations/{evaluation.id}")}
        publish(evaluation.team_id, event, key=f"{evaluation.id}:{evaluation.events_count}", data=facts | figures | why)


def save_history(evaluation: Evaluation) -> None:
    evaluation.updated_at = now()
    evaluation.save()
