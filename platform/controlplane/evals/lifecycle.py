"""What happens to a hosted evaluation without its owner asking: leasing, start, loss of the holder, finish, time-out.

Each function runs inside its caller's transaction with the evaluation locked, but for those that say that they open one.
"""

from datetime import timedelta

from django.db import transaction

from controlplane.billing.queries import is_exhausted
from controlplane.core.clock import now
from controlplane.evals import access, queries
from controlplane.evals.history import append_event, move, save_history
from controlplane.evals.models import EvalStatus, Evaluation
from controlplane.evals.scores import result_line, result_of
from controlplane.evals.states import is_terminal
from controlplane.pools.access import live_lease, lock_pool
from controlplane.pools.queries import live_count
from controlplane.pools.services import LEASE_S, GrantedAttempt, grant_lease, release_lease
from trainer.contracts.events import EventKind, FailureCode
from trainer.contracts.internal import Finish, Heartbeat, HeartbeatReply

LOST_ATTEMPTS_MAX = 3
RETRIED_CODES = frozenset({FailureCode.RUNNER_LOST, FailureCode.INFERENCE_UNREACHABLE, FailureCode.LEASE_LOST})


@transaction.atomic
def lease_next_evaluation(pool_id: str) -> GrantedAttempt | None:
    """Give the fairest waiting evaluation of a pool to a new attempt; None when nothing waits or every slot is taken."""
    pool = lock_pool(pool_id)
    if live_count("eval", pool=pool) >= pool.eval_slots:
        return None
    for evaluation_id in queries.waiting_order(pool):
        evaluation = access.lock_evaluation(evaluation_id)
        if evaluation is not None and evaluation.status == EvalStatus.PENDING and live_lease("eval", evaluation_id) is None:
            granted = grant_lease(subject_kind="eval", subject_id=evaluation.id, team_id=evaluation.team_id, pool=pool)
            evaluation.attempt = granted.lease.attempt
            save_history(evaluation)
            return granted
    return None


def heed_heartbeat(evaluation: Evaluation, beat: Heartbeat) -> HeartbeatReply:
    if evaluation.status == EvalStatus.PENDING:
        move(evaluation, EvalStatus.RUNNING, reason=f"attempt {evaluation.attempt} is working")
        save_history(evaluation)
    if evaluation.cancel_requested_at is not None:
        return HeartbeatReply(desired="stop", reason="cancelled by its owner", code=FailureCode.STOPPED_BY_USER, lease_s=LEASE_S)
    if is_exhausted(evaluation.team_id, subject_kind="eval", subject_id=evaluation.id):
        return HeartbeatReply(desired="stop", reason="the wallet is empty", code=FailureCode.OUT_OF_FUNDS, lease_s=LEASE_S)
    return HeartbeatReply(desired="run", lease_s=LEASE_S)


def finish_evaluation(evaluation: Evaluation, report: Finish) -> None:
    """Settle the evaluation as its holder reports."""
    if report.outcome == "failed" and report.code in RETRIED_CODES:
        lose_attempt(evaluation, f"{report.code}: {report.message}")
        return
    _settle_result(evaluation)
    status = _final_status(evaluation, report)
    if status is EvalStatus.FAILED:
        _set_error(evaluation, report.code, report.message, report.detail)
    move(evaluation, status, reason=report.message, code=report.code)
    save_history(evaluation)


def _settle_result(evaluation: Evaluation) -> None:
    """Of all that is there, whichever attempts made it: one that was stopped has the result of what it did."""
    result = result_of(evaluation)
    evaluation.avg_score = result.reward_mean
    evaluation.ci_low, evaluation.ci_high = result.reward_ci95 or (None, None)
    evaluation.metrics = result.metrics | result.model_dump(mode="json", exclude={"metrics"})
    if result.rollouts:
        append_event(evaluation, EventKind.EVAL, {"message": result_line(result)} | result.model_dump(mode="json"))


def _final_status(evaluation: Evaluation, report: Finish) -> EvalStatus:
    if report.outcome == "completed":
        return EvalStatus.COMPLETED
    return EvalStatus.CANCELLED if evaluation.cancel_requested_at is not None else EvalStatus.FAILED


def _set_error(evaluation: Evaluation, code: FailureCode | None, message: str, detail: dict[str, object] | None = None) -> None:
    evaluation.error_code, evaluation.error_message, evaluation.error_detail = code or "", message, detail or {}


def lose_attempt(evaluation: Evaluation, cause: str) -> None:
    """Another attempt goes on with what is missing, unless too many were lost or the owner has cancelled."""
    evaluation.lost_attempts += 1
    incident = {"code": FailureCode.LEASE_LOST, "message": cause, "component": "orchestrator"}
    append_event(evaluation, EventKind.INCIDENT, incident)
    if evaluation.cancel_requested_at is not None or evaluation.lost_attempts >= LOST_ATTEMPTS_MAX:
        _settle_result(evaluation)
    if evaluation.cancel_requested_at is not None:
        move(evaluation, EvalStatus.CANCELLED, reason="cancelled by its owner")
    elif evaluation.lost_attempts >= LOST_ATTEMPTS_MAX:
        message = f"{evaluation.lost_attempts} attempts in a row were lost; the last one: {cause}"
        _set_error(evaluation, FailureCode.ATTEMPTS_EXHAUSTED, message)
        move(evaluation, EvalStatus.FAILED, reason=message, code=FailureCode.ATTEMPTS_EXHAUSTED)
    else:
        evaluation.eligible_at = now() + timedelta(seconds=2.0 ** (evaluation.lost_attempts - 1) - 1)
        if evaluation.status != EvalStatus.PENDING:
            move(evaluation, EvalStatus.PENDING, reason=cause)
    save_history(evaluation)


@transaction.atomic
def end_overdue(evaluation_id: str) -> bool:
    """End an evaluation that its owner cancelled, or that ran out of time, and whose holder does not answer. True when this
    call did it."""
    evaluation = access.lock_evaluation(evaluation_id)
    if evaluation is None or is_terminal(evaluation.status):
        return False
    fence(evaluation, "overdue")
    _settle_result(evaluation)
    if evaluation.cancel_requested_at is not None:
        move(evaluation, EvalStatus.CANCELLED, reason="cancelled by its owner; the process did not answer")
    else:
        minutes = (evaluation.config or {}).get("timeout_minutes")
        evaluation.error_message = f"the time limit of {minutes} minutes has passed"
        move(evaluation, EvalStatus.TIMEOUT, reason=evaluation.error_message)
    save_history(evaluation)
    return True


def fence(evaluation: Evaluation, reason: str) -> None:
    """Take the evaluation from its holder; the worker kills the process."""
    lease = live_lease("eval", evaluation.id, lock=True)
    if lease is not None:
        release_lease(lease, reason=reason)
