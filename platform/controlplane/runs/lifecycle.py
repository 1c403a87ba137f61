"""What happens to a run without its owner asking: leasing, start, loss of the holder, finish.

Writes only; each function runs inside the transaction of its caller (a scheduler's, or the one that proves a lease) with the
run locked. Refuses to know processes: `workers` starts and kills them.
"""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q

from controlplane.billing.queries import is_exhausted
from controlplane.core.clock import now
from controlplane.pools.access import live_lease, lock_pool
from controlplane.pools.models import Pool
from controlplane.pools.queries import live_count
from controlplane.pools.services import LEASE_S, GrantedAttempt, grant_lease, release_lease
from controlplane.runs import access, queries
from controlplane.runs.history import append_incident, move, save_history, set_failure
from controlplane.runs.models import Run
from controlplane.runs.states import LEASED_STATES, RunKind
from trainer.contracts.events import Component, FailureCode, RunState
from trainer.contracts.internal import Finish, Heartbeat, HeartbeatReply

LOST_ATTEMPTS_MAX = 5
"""Attempts in a row that may end without a committed step before the run is given up."""
BACKOFF_S_MAX = 60.0
RETRIED_CODES = frozenset(
    {FailureCode.RUNNER_LOST, FailureCode.TRAINER_UNREACHABLE, FailureCode.INFERENCE_UNREACHABLE, FailureCode.LEASE_LOST}
)
"""Our failures, not the run's: a holder that reports one has merely lost its attempt."""
SERVICE_NAMES = {
    Component.WEB: "the web process",
    Component.INTERNAL: "the internal API's process",
    Component.WORKER: "the worker",
    Component.BEAT: "the clock (beat)",
    Component.DATABASE: "PostgreSQL",
}
OUTCOME_STATES = {
    "completed": RunState.COMPLETED,
    "failed": RunState.FAILED,
    "stopped": RunState.STOPPED,
    "paused": RunState.PAUSED,
}


@transaction.atomic
def lease_next_run(pool_id: str) -> GrantedAttempt | None:
    """Give the fairest queued run of a pool to a new attempt. None when nothing waits or every slot is taken."""
    pool = lock_pool(pool_id)
    if live_count("run", pool=pool) >= pool.run_slots:
        return None
    for run_id in queries.queue_order(pool, only_eligible=True):
        run = access.lock_run(run_id)
        if run is not None and run.state == RunState.QUEUED and live_lease("run", run_id) is None:
            return _lease(run, pool)
    return None


def _lease(run: Run, pool: Pool) -> GrantedAttempt:
    granted = grant_lease(subject_kind="run", subject_id=run.id, team_id=run.team_id, pool=pool, segment=run.segment)
    run.attempt, run.queue_reason = granted.lease.attempt, ""
    move(run, RunState.PENDING, reason=f"attempt {run.attempt} is starting")
    save_history(run)
    return granted


def explain_waiting(pool: Pool) -> None:
    """Say to those who wait why they do. No event: a place in a queue is a view, not history."""
    waiting = Run.objects.filter(pool=pool, state=RunState.QUEUED)
    taken = live_count("run", pool=pool)
    held_back = waiting.filter(eligible_at__gt=now())
    held_back.update(queue_reason="waits a moment after an attempt that was lost")
    reason = f"all {pool.run_slots} places of pool {pool.name} are taken" if taken >= pool.run_slots else ""
    waiting.filter(eligible_at__lte=now()).exclude(queue_reason=reason).update(queue_reason=reason)


@transaction.atomic
def repair_unleased(run_id: str) -> bool:
    """A run whose state says that somebody works on it although nobody does counts as one that lost its holder."""
    run = access.lock_run(run_id)
    if run is None or run.state not in LEASED_STATES or live_lease("run", run_id) is not None:
        return False
    lose_attempt(run, "no lease was found")
    return True


def heed_heartbeat(run: Run, beat: Heartbeat) -> HeartbeatReply:
    """Note that the holder lives, and answer what its run shall do."""
    if run.state == RunState.PENDING and (beat.inflight or beat.step > run.step):
        start_running(run)
    if run.state == RunState.RUNNING and run.stop_requested_at is None and _is_out_of_funds(run):
        set_failure(run, FailureCode.OUT_OF_FUNDS, "the wallet is empty; top it up and resume the run")
        move(run, RunState.PAUSING, reason=run.failure_message, code=FailureCode.OUT_OF_FUNDS)
    save_history(run)
    return desired_state(run)


def _is_out_of_funds(run: Run) -> bool:
    return is_exhausted(run.team_id, subject_kind="run", subject_id=run.id)


def desired_state(run: Run) -> HeartbeatReply:
    if run.stop_requested_at is not None:
        return HeartbeatReply(desired="stop", reason="stopped by its owner", code=FailureCode.STOPPED_BY_USER, lease_s=LEASE_S)
    if run.state == RunState.PAUSING:
        code = FailureCode(run.failure_code) if run.failure_code else None
        return HeartbeatReply(desired="pause", reason=run.failure_message or "paused by its owner", code=code, lease_s=LEASE_S)
    return HeartbeatReply(desired="run", lease_s=LEASE_S)


def start_running(run: Run) -> None:
    if run.state == RunState.PENDING:
        move(run, RunState.RUNNING, reason=f"attempt {run.attempt} is working")


def finish_run(run: Run, report: Finish) -> None:
    """Settle the run as its holder reports. What the owner asked for meanwhile wins over pauses and our own failures."""
    if report.outcome == "failed" and report.code in RETRIED_CODES:
        lose_attempt(run, f"{report.code}: {report.message}")
        return
    state = OUTCOME_STATES[report.outcome]
    if run.stop_requested_at is not None and state is not RunState.COMPLETED:
        state = RunState.STOPPED
    if report.code is not None or state in {RunState.COMPLETED, RunState.STOPPED}:
        set_failure(run, report.code if state is not RunState.COMPLETED else None, report.message, report.detail)
    run.stop_requested_at = None
    move(run, state, reason=report.message, code=report.code)
    save_history(run)


def lose_attempt(run: Run, cause: str) -> None:
    """An attempt ended without finishing its run: go where the owner wanted it to be, else wait for another attempt, unless too
    many went the same way."""
    run.lost_attempts += 1
    what = f"attempt {run.attempt} was lost ({cause}) after step {run.step}; {_consequence(run)}"
    append_incident(run, FailureCode.LEASE_LOST, what, component=Component.ORCHESTRATOR)
    if run.stop_requested_at is not None:
        run.stop_requested_at = None
        move(run, RunState.STOPPED, reason="stopped by its owner", code=FailureCode.STOPPED_BY_USER)
    elif run.state == RunState.PAUSING:
        move(run, RunState.PAUSED, reason=run.failure_message or "paused by its owner")
    elif run.lost_attempts >= LOST_ATTEMPTS_MAX:
        message = f"{run.lost_attempts} attempts in a row ended without a committed step; the last one: {cause}"
        set_failure(run, FailureCode.ATTEMPTS_EXHAUSTED, message)
        move(run, RunState.FAILED, reason=message, code=FailureCode.ATTEMPTS_EXHAUSTED)
    else:
        run.eligible_at = now() + timedelta(seconds=min(BACKOFF_S_MAX, 2.0 ** (run.lost_attempts - 1) - 1))
        move(run, RunState.QUEUED, reason=cause)
    save_history(run)


def _consequence(run: Run) -> str:
    """What is done about a lost attempt, in words."""
    if run.stop_requested_at is not None or run.state == RunState.PAUSING:
        return "none follows, as its owner wished"
    if run.lost_attempts >= LOST_ATTEMPTS_MAX:
        return "it was one too many"
    return "another one goes on from there"


def tell_service_loss(component: Component, known_at: datetime) -> None:
    """Write into the history of every run that was at work that a process of ours was lost and works again."""
    at_work = Q(state__in=LEASED_STATES) | Q(state=RunState.QUEUED, attempt__gt=0) | Q(finished_at__gte=known_at)
    touched = Run.objects.filter(at_work, started_at__lte=known_at, deleted_at__isnull=True).exclude(kind=RunKind.EXTERNAL)
    for run_id in list(touched.order_by("id").values_list("id", flat=True)):
        run = access.lock_run(run_id)
        if run is not None:
            message = f"{SERVICE_NAMES[component]} ended without being asked to and was started again; the run goes on"
            append_incident(run, FailureCode.SERVICE_LOST, message, component=component, at=known_at)
            save_history(run)


def fence(run: Run, reason: str) -> None:
    """Take the run from its holder, whatever it is doing. The worker kills the process; its token opens nothing from now on."""
    lease = live_lease("run", run.id, lock=True)
    if lease is not None:
        release_lease(lease, reason=reason)


@transaction.atomic
def force_stop(run_id: str) -> bool:
    """Stop a run whose holder was told to and did not. True when this call did it."""
    run = access.lock_run(run_id)
    if run is None or run.stop_requested_at is None:
        return False
    fence(run, "stopped")
    run.stop_requested_at = None
    move(run, RunState.STOPPED, reason="stopped by its owner; the process did not answer", code=FailureCode.STOPPED_BY_USER)
    save_history(run)
    return True
