"""What a team does with its runs. One transaction each, no network; the outbox carries the consequences.

Asking twice is not an error: clients retry. What the run's state does not allow is a `Conflict` that says so.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import transaction

from controlplane.billing.services import require_funds
from controlplane.core import outbox
from controlplane.core.clock import now
from controlplane.core.errors import Conflict
from controlplane.core.sealing import seal
from controlplane.runs import lifecycle
from controlplane.runs.access import access_checkpoint, access_run
from controlplane.runs.datasets import hold_datasets
from controlplane.runs.forks import Origin, origin_of
from controlplane.runs.history import append_event, move, save_history, set_failure
from controlplane.runs.models import Run
from controlplane.runs.preflight import RunPlan, plan_run
from controlplane.runs.request import parse_request
from controlplane.runs.states import RunKind, is_terminal
from controlplane.teams.actors import Actor
from trainer.contracts.events import EventKind, FailureCode, RunState

SCHEDULE_TASK = "runs.schedule_runs"
OWNER_STOPPED = "stopped by its owner"
OWNER_PAUSED = "paused by its owner"


def create_run(
    *, actor: Actor, body: Mapping[str, Any], force: bool = False, notices: Sequence[str] = (), origin: Origin | None = None
) -> Run:
    """Accept a run and queue it; `notices` are told to its owner; with an `origin` it is a fork. Raises Invalid, NotFound or
    PaymentRequired, and then has made nothing."""
    request = parse_request(body, force=force, notices=notices)
    require_funds(actor.team)
    plan = plan_run(actor, request)
    if origin is not None:
        origin.check(plan.config)
    with transaction.atomic():
        run = _insert_run(actor, plan, origin)
        hold_datasets(run)
        if plan.config.checkpoint_id:
            access_checkpoint(actor, plan.config.checkpoint_id, lock=True)  # it may have been retired since the plan was made
        append_event(run, EventKind.STATE, {"state": RunState.QUEUED, "reason": "accepted"})
        for notice in request.notices:
            append_event(run, EventKind.WARNING, {"code": "notice", "message": notice, "component": "api"})
        save_history(run)
        _ask_for_schedule(run)
    return run


def fork_run(*, actor: Actor, checkpoint_id: str, changes: Any) -> Run:
    """A new run that goes on where the checkpoint's run was. Raises what `create_run` does, and Conflict for a checkpoint that
    does not tell where that was."""
    origin = origin_of(actor, checkpoint_id, changes)
    return create_run(actor=actor, body=origin.body, origin=origin)


def _insert_run(actor: Actor, plan: RunPlan, origin: Origin | None) -> Run:
    return Run.objects.create(
        team=actor.team,
        created_by=actor.user,
        name=plan.config.name,
        base_model=plan.pool.base_model,
        pool=plan.pool,
        config=plan.config.model_dump(mode="json"),
        client_config=plan.request.client_config,
        releases=plan.release_ids,
        init_from=plan.init_from,
        forked_from=origin.recorded() if origin else None,
        step=origin.checkpoint.step if origin else 0,
        teachers=plan.teachers,
        seats=plan.seats,
        sealed_secrets=seal(plan.request.secrets),
        notice=" ".join(plan.request.notices),
        queued_at=now(),
    )


def _ask_for_schedule(run: Run) -> None:
    outbox.emit(task=SCHEDULE_TASK, key=f"run:{run.id}:queued:{run.events_count}", payload={})


@transaction.atomic
def stop_run(*, actor: Actor, run_id: str) -> Run:
    """End a run for good, unless its owner restarts it. A run at work is told to stop and has moments to do so; one that merely
    starts or waits, or is trained elsewhere, ends here."""
    run = access_run(actor, run_id, lock=True)
    if is_terminal(RunState(run.state)) or run.stop_requested_at is not None:
        return run
    if run.state in {RunState.RUNNING, RunState.PAUSING} and run.kind != RunKind.EXTERNAL:
        run.stop_requested_at = now()
        save_history(run)
        return run
    lifecycle.fence(run, "stopped")
    set_failure(run, FailureCode.STOPPED_BY_USER, OWNER_STOPPED)
    move(run, RunState.STOPPED, reason=OWNER_STOPPED, code=FailureCode.STOPPED_BY_USER)
    save_history(run)
    return run


@transaction.atomic
def pause_run(*, actor: Actor, run_id: str) -> Run:
    """Let the run write a checkpoint and give its slot back. A run that merely waits is paused at once."""
    run = access_run(actor, run_id, lock=True)
    _require_ours(run)
    if run.state in {RunState.PAUSING, RunState.PAUSED}:
        return run
    if is_terminal(RunState(run.state)):
        raise Conflict(f"the run is {run.state}; only a run that waits or works can be paused")
    waits = run.state == RunState.QUEUED
    set_failure(run, None, "")
    move(run, RunState.PAUSED if waits else RunState.PAUSING, reason=OWNER_PAUSED)
    save_history(run)
    return run


@transaction.atomic
def resume_run(*, actor: Actor, run_id: str) -> Run:
    """Go on where a paused run left off, in the same segment."""
    run = access_run(actor, run_id, lock=True)
    _require_ours(run)
    if run.state in {RunState.QUEUED, RunState.PENDING, RunState.RUNNING}:
        return run
    if run.state != RunState.PAUSED:
        raise Conflict(f"the run is {run.state}; only a PAUSED run can be resumed", hint="Use restart for a run that ended.")
    require_funds(run.team)
    _requeue(run, "resumed by its owner")
    return run


@transaction.atomic
def restart_run(*, actor: Actor, run_id: str) -> Run:
    """Begin a new segment from the newest checkpoint. Whoever works on the run now is fenced off."""
    run = access_run(actor, run_id, lock=True)
    _require_ours(run)
    if run.state == RunState.COMPLETED:
        raise Conflict("the run is COMPLETED; there is nothing left to train", hint="Start a new run with checkpoint_id.")
    require_funds(run.team)
    lifecycle.fence(run, "restarted")
    run.segment += 1
    run.stop_requested_at = None
    if run.state == RunState.QUEUED:
        append_event(run, EventKind.STATE, {"state": RunState.QUEUED, "reason": "restarted by its owner"})
        save_history(run)
        _ask_for_schedule(run)
    else:
        _requeue(run, "restarted by its owner")
    return run


def _require_ours(run: Run) -> None:
    if run.kind == RunKind.EXTERNAL:
        raise Conflict("the run is trained elsewhere; only its own trainer can do that", hint="Stop it here, or steer it there.")


def _requeue(run: Run, reason: str) -> None:
    hold_datasets(run)
    set_failure(run, None, "")
    run.lost_attempts, run.eligible_at = 0, now()
    move(run, RunState.QUEUED, reason=reason)
    save_history(run)
    _ask_for_schedule(run)


@transaction.atomic
def delete_run(*, actor: Actor, run_id: str) -> None:
    """Take a finished run out of sight. Its adapters and its bill stay."""
    run = access_run(actor, run_id, lock=True)
    if not is_terminal(RunState(run.state)) and run.state != RunState.PAUSED:
        raise Conflict(f"the run is {run.state}; stop it first", hint="prime train stop RUN")
    run.deleted_at = now()
    save_history(run)
