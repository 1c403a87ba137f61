"""A finished episode as the `RolloutEnd` that goes out: the outcome rule, whose fault it was, what the page shows.

Knows the library's traces. Refuses to trust `ok`: a scoring that timed out and a reward that is not a number both leave it true.

    failed       the library recorded an error
    incomplete   a stage timed out, or any reward is absent, not finite or out of range
    ok           anything else; only then there is a reward
"""

from typing import Any, Literal

import verifiers.v1 as vf
from verifiers.v1.episode import Episode
from verifiers.v1.trace import TimeSpan, Trace
from verifiers.v1.types import Message, ToolCall, content_text

from trainer.contracts.rollouts import REWARDS_MAX, TRACES_MAX, RolloutEnd, TenantError, TraceReport
from trainer.runner.chat_harness import interrupted_calls
from trainer.runner.faults import clean, from_record
from trainer.runner.hooks import error_in_reward, error_in_stage
from trainer.runner.limits import CALLERS_FAULT, ERRORS_MAX, MESSAGE_CHARS, MESSAGES_MAX, NAME_CHARS, is_score

_PROVIDER_ERRORS = frozenset(
    {"ProviderError", "MalformedGenerateResponseError", "InterceptionError", "TunnelError", "SandboxError"}
)
_TASK_STAGES = ("scoring", "finalize", "agent", "setup")

Fault = Literal["none", "tenant", "infrastructure"]


def report_episode(episode: Episode, task: vf.Task) -> RolloutEnd:
    """Everything about a played episode of `task`. No traces at all is possible: then the episode's own errors say why."""
    traces = [report_trace(trace, task) for trace in episode.traces[:TRACES_MAX]]
    state = "failed" if not episode.ok else next((trace.state for trace in traces if trace.state != "ok"), "ok")
    errors = [from_record(error) for error in episode.errors[-ERRORS_MAX:]]
    fault = "none" if state == "ok" else fault_of(episode.traces)
    return RolloutEnd(state=state, traces=traces, errors=errors, fault=fault)


def fault_of(traces: list[Trace]) -> Fault:
    """Ours when a model call failed or was still unanswered, the tenant's otherwise. Read from the calls, since the error that
    the harness saw is only their echo."""
    for trace in traces:
        was_waiting = trace.id in interrupted_calls
        interrupted_calls.discard(trace.id)
        if was_waiting or _provider_failed(trace):
            return "infrastructure"
    return "tenant"


def _provider_failed(trace: Trace) -> bool:
    error = trace.calls[-1].error if trace.calls else None
    return error is not None and error.type in _PROVIDER_ERRORS and error.status_code not in CALLERS_FAULT


def error_of_deadline(traces: list[Trace], task: vf.Task) -> TenantError:
    """What a rollout was at when its deadline passed. Ask before it is cancelled, which closes its stages."""
    at = next((stage for trace in traces for stage in _TASK_STAGES if _is_open(getattr(trace.timing, stage))), None)
    doing = f" during {at}" if at else ""
    return error_in_stage(task, at or "", f"the rollout passed its deadline{doing}")


def _is_open(span: TimeSpan) -> bool:
    return bool(span.start) and not span.end


def report_unfinished(traces: list[Trace]) -> list[TraceReport]:
    """Traces that were cut off: who they were, so that the proxy's record of their calls finds its rollout."""
    return [
        TraceReport(
            trace_id=trace.id,
            agent=trace.agent.name,
            trainable=trace.agent.trainable,
            state="incomplete",
            turns=trace.num_turns,
        )
        for trace in traces[:TRACES_MAX]
    ]


def report_trace(trace: Trace, task: vf.Task) -> TraceReport:
    scores = {
        clean(name, NAME_CHARS): None if reward is None else reward.score
        for name, reward in list(trace.rewards.items())[:REWARDS_MAX]
    }
    bad = [name for name, score in scores.items() if not is_score(score)]
    usage = trace.usage
    if trace.ok and is_score(trace.reward) and not trace.is_timeout and not bad:
        state = "ok"
    else:
        state = "incomplete" if trace.ok else "failed"
    return TraceReport(
        trace_id=trace.id,
        agent=trace.agent.name,
        trainable=trace.agent.trainable,
        state=state,
        stop=clean(trace.stop_condition or "", NAME_CHARS) or None,
        reward=trace.reward if state == "ok" else None,
        rewards={name: None if name in bad else score for name, score in scores.items()},
        metrics={clean(name, NAME_CHARS): value for name, value in list(trace.metrics.items())[:REWARDS_MAX] if is_score(value)},
        turns=trace.num_turns,
        input_tokens=max(0, usage.input_tokens) if usage else 0,
        output_tokens=max(0, usage.completion_tokens) if usage else 0,
        truncated=trace.is_truncated,
        scoring_s=trace.timing.scoring.duration,
        errors=_errors(trace, task, scores, bad),
        messages=[_display(message) for message in trace.messages[-MESSAGES_MAX:]],
    )


def _errors(trace: Trace, task: vf.Task, scores: dict[str, float | None], bad: list[str]) -> list[TenantError]:
    """The library's errors, and one for each thing that it let pass."""
    errors = [from_record(error) for error in trace.errors]
    if trace.is_timeout:
        stop = trace.stop_condition or "stage_timeout"
        errors.append(error_in_stage(task, stop.removesuffix("_timeout"), stop.replace("_", " ")))
    elif trace.ok:
        errors += [error_in_reward(task, name, f"reward {name!r} is {scores[name]}") for name in bad]
        if not bad and not is_score(trace.reward):
            errors.append(TenantError(type="BadReward", message=f"the weighted reward is {trace.reward}"))
    return errors[-ERRORS_MAX:]


def _display(message: Message) -> dict[str, Any]:
    shown: dict[str, Any] = {"role": message.role, "content": clean(content_text(message.content), MESSAGE_CHARS)}
    if calls := getattr(message, "tool_calls", None):
        shown["tool_calls"] = [_display_call(call) for call in calls[:ERRORS_MAX]]
    if name := getattr(message, "name", None):
        shown["name"] = clean(name, NAME_CHARS)
    return shown


def _display_call(call: ToolCall) -> dict[str, str]:
    return {"name": clean(call.name, NAME_CHARS), "arguments": clean(call.arguments, MESSAGE_CHARS)}
