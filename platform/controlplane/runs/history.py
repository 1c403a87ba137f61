"""How a run changes: a legal transition and its event, in the caller's transaction, under the run's lock.

Every change of state goes through `move`; every line of history through `append_event`. Both only take a run that is locked.
"""

from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction

from controlplane.core import doorbell
from controlplane.core.clock import now
from controlplane.runs.models import Run, RunEvent
from controlplane.runs.states import check_transition, is_terminal
from controlplane.webhooks.models import EventType
from controlplane.webhooks.publishing import page_url, publish
from trainer.contracts.events import Component, EventKind, FailureCode, RunState

TOLD_STATES = {
    RunState.COMPLETED: EventType.RUN_COMPLETED,
    RunState.FAILED: EventType.RUN_FAILED,
    RunState.STOPPED: EventType.RUN_STOPPED,
    RunState.PAUSED: EventType.RUN_PAUSED,
}
"""What webhooks are told of."""


def channel(run_id: str) -> str:
    """What rings when a run's history grows."""
    return f"run:{run_id}"


def append_event(
    run: Run,
    kind: EventKind,
    payload: dict[str, Any],
    *,
    step: int | None = None,
    at: datetime | None = None,
    sequence: int | None = None,
) -> RunEvent:
    """Add one line. `sequence` is the holder's own count, for reports alone. The caller saves the run (`save_history`)."""
    run.events_count += 1
    return RunEvent.objects.create(
        run=run,
        team_id=run.team_id,
        seq=run.events_count,
        segment=run.segment,
        attempt=run.attempt,
        sequence=sequence,
        kind=kind,
        step=step,
        at=at or now(),
        payload=payload,
    )


def append_incident(run: Run, code: FailureCode, message: str, *, component: Component, at: datetime | None = None) -> RunEvent:
    """Something failed and was handled: the message says what, and what was done about it."""
    return append_event(run, EventKind.INCIDENT, {"code": code, "message": message, "component": component}, at=at)


def move(run: Run, state: RunState, *, reason: str = "", code: FailureCode | None = None) -> None:
    """Put the run into a state that may follow the present one, and write that down. Times are set where they belong."""
    check_transition(RunState(run.state), state)
    moment = now()
    run.state = state
    if state is RunState.RUNNING:
        run.started_at = run.started_at or moment
    if is_terminal(state):
        run.finished_at = moment
    if state is RunState.QUEUED:
        run.queued_at, run.finished_at = moment, None
    append_event(run, EventKind.STATE, {"state": state, "reason": reason} | ({"code": code} if code else {}), at=moment)
    _tell_webhooks(run, reason=reason, code=code)


def _tell_webhooks(run: Run, *, reason: str, code: FailureCode | None) -> None:
    event = TOLD_STATES.get(RunState(run.state))
    if event is not None:
        facts = {"run_id": run.id, "name": run.name, "state": run.state, "step": run.step, "base_model": run.base_model}
        why = {"reason": reason, "code": code or "", "url": page_url(f"/runs/{run.id}")}
        publish(run.team_id, event, key=f"{run.id}:{run.events_count}", data=facts | why)


def set_failure(run: Run, code: FailureCode | None, message: str, detail: dict[str, Any] | None = None) -> None:
    run.failure_code = code or ""
    run.failure_message = message
    run.failure_detail = detail or {}


def save_history(run: Run) -> None:
    """Write the locked run back and wake whoever watches it, once this is committed."""
    run.updated_at = now()
    run.save()
    transaction.on_commit(partial(doorbell.ring, channel(run.id)))
