"""From what the runner claims and what the proxy saw to one outcome: is this rollout fit to train on, and whose failure is it?

Knows the outcome rule. Refuses to trust the runner: it shares its process with tenant code, so a failure is infrastructure's
only where the proxy saw it, and a reward counts only beside recorded calls of the rollout's own policy version.
"""

from collections.abc import Sequence

from trainer.contracts.rollouts import RolloutEnd, TenantError, TraceReport
from trainer.orchestrator.proxy.sessions import Session, SessionBook
from trainer.orchestrator.rollouts.rollout import RolloutOutcome, RolloutState, Trace


def judge(
    end: RolloutEnd,
    sessions: SessionBook,
    *,
    environment: str,
    engine_name: str,
    needs_tokens: bool = True,
    engine_was_away: bool = False,
) -> RolloutOutcome:
    """Claim the sessions of a finished rollout and settle its outcome. `needs_tokens` is False for an evaluation, which
    trains nothing and may call the chat route. `engine_was_away`: at some moment of the rollout's life."""
    claimed = [(report, sessions.take(environment, report.trace_id)) for report in end.traces]
    traces = tuple(_trace(report, session) for report, session in claimed)
    broken = _seen_failure([session for _, session in claimed if session], end, engine_was_away=engine_was_away)
    if broken is not None:
        return _outcome("infrastructure", end, traces, error=broken)
    if end.state != "ok":
        return _outcome(end.state, end, traces, error=_first_error(end))
    scored = _scored(traces, needs_tokens=needs_tokens)
    problem = _unfit(scored, engine_name=engine_name, needs_tokens=needs_tokens)
    if problem is not None:
        return _outcome("failed", end, traces, error=problem)
    reward = sum(trace.report.reward or 0.0 for trace in scored) / len(scored)
    return _outcome("ok", end, traces, reward=reward, main=scored[0].report)


def _trace(report: TraceReport, session: Session | None) -> Trace:
    """A trace in which another model than the policy spoke is no learner, whatever the runner says of it."""
    calls = tuple(session.calls) if session else ()
    if any(call.seat for call in calls):
        report = report.model_copy(update={"trainable": False})
    return Trace(report, calls)


def _scored(traces: Sequence[Trace], *, needs_tokens: bool) -> list[Trace]:
    """Whose rewards are the rollout's: the learners'. An environment that trains none of its agents is good for evaluations, and
    there those count that the policy played."""
    learners = [trace for trace in traces if trace.report.trainable]
    if learners or needs_tokens:
        return learners
    return [trace for trace in traces if trace.calls and not any(call.seat for call in trace.calls)]


def lost(state: RolloutState, error: str) -> RolloutOutcome:
    """The outcome of a rollout that nobody answered for."""
    return RolloutOutcome(state=state, error=error)


def unclaimed_outcome(session: Session) -> RolloutOutcome:
    """Calls that no rollout claimed: shown and billed, except where the engine failed."""
    report = TraceReport(trace_id="unclaimed", state="failed", turns=len(session.calls))
    state: RolloutState = "infrastructure" if session.infrastructure else "failed"
    error = session.infrastructure or "model calls outside any rollout's trace"
    return RolloutOutcome(state=state, error=error, turns=len(session.calls), traces=(Trace(report, tuple(session.calls)),))


def _seen_failure(sessions: list[Session], end: RolloutEnd, *, engine_was_away: bool) -> str | None:
    """The infrastructure's failure that the proxy saw, or one that the runner claims and the proxy can confirm."""
    broken = next((session.infrastructure for session in sessions if session.infrastructure), None)
    if broken is None and end.state != "ok" and end.fault == "infrastructure":
        if engine_was_away:
            return "the inference servers were away"
        if any(session.live for session in sessions):
            return "a model call was still unanswered when the rollout ended"
    return broken


def _unfit(scored: list[Trace], *, engine_name: str, needs_tokens: bool) -> str | None:
    """Why a rollout that calls itself good cannot be used, or None."""
    if not scored:
        wanted = "trainable trace" if needs_tokens else "trace in which the policy spoke"
        return f"the environment returned no {wanted}"
    for trace in scored:
        if trace.report.state != "ok" or trace.report.reward is None:
            return f"trace {trace.report.trace_id} has no reward (state {trace.report.state})"
        other = next((call.engine_name for call in trace.calls if call.engine_name != engine_name), None)
        if other is not None:
            return f"trace {trace.report.trace_id} called {other} instead of its own policy {engine_name}"
        if needs_tokens and not any(call.token_ids for call in trace.calls):
            return f"no sampled token was recorded for trace {trace.report.trace_id}: there is nothing to train on"
    return None


def _outcome(
    state: RolloutState,
    end: RolloutEnd,
    traces: tuple[Trace, ...],
    *,
    reward: float | None = None,
    error: str | None = None,
    main: TraceReport | None = None,
) -> RolloutOutcome:
    """`main` is shown for the rollout; where none is named, the first learner's or else the first."""
    reports = [trace.report for trace in traces]
    main = main or next((report for report in reports if report.trainable), reports[0] if reports else None)
    return RolloutOutcome(
        state=state,
        reward=reward,
        rewards=dict(main.rewards) if main else {},
        metrics=dict(main.metrics) if main else {},
        turns=main.turns if main else 0,
        stop=main.stop if main else None,
        error=error,
        traces=traces,
    )


def _first_error(end: RolloutEnd) -> str:
    errors = [*end.errors, *(error for report in end.traces for error in report.errors)]
    if errors:
        return describe(errors[0])
    bare = [name for report in end.traces for name, value in report.rewards.items() if value is None]
    if bare:
        return f"reward {bare[0]!r} is not a finite number or timed out"
    return {"deadline": "the rollout passed its deadline", "cancelled": "cancelled"}.get(end.state, "the rollout gave no reason")


def describe(error: TenantError) -> str:
    """One line with the place in the tenant's own code."""
    place = f" at {error.module}:{error.line}" if error.module else ""
    inside = f" in {error.function}" if error.function else ""
    return f"{error.type}: {error.message}{place}{inside}"
