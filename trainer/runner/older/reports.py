"""A played row as the `TraceReport` that goes out: rewards by part, what was said, and nothing that was not measured.

Knows the library's state of a rollout. Refuses to trust its reward: a part that failed was written down as 0.0.
"""

from typing import Any, Literal

from trainer.contracts.rollouts import REWARDS_MAX, TenantError, TraceReport
from trainer.runner.faults import clean
from trainer.runner.limits import ERRORS_MAX, MESSAGE_CHARS, MESSAGES_MAX, NAME_CHARS, is_score
from trainer.runner.older.messages import field, text_of
from trainer.runner.older.rewards import weights


def report_trace(
    trace_id: str,
    state: Literal["ok", "failed", "incomplete"],
    *,
    env: Any,
    played: Any,
    turns: int,
    failed: set[str],
    errors: list[TenantError],
    scoring_s: float,
) -> TraceReport:
    """`played` is the library's state, None where the rollout did not come that far; `failed` names the functions whose score is
    none. A state of `ok` becomes `incomplete` where the weighted reward is no number."""
    found = played if played is not None else {}
    reward = found.get("reward")
    if state == "ok" and not is_score(reward):
        state = "incomplete"
    rewards, metrics = _scores(env, found.get("metrics") or {}, failed)
    usage = found.get("usage") or {}
    return TraceReport(
        trace_id=trace_id,
        state=state,
        stop=clean(str(found.get("stop_condition") or ""), NAME_CHARS) or None,
        reward=reward if state == "ok" else None,
        rewards=rewards,
        metrics=metrics,
        turns=turns,
        input_tokens=max(0, int(usage.get("input_tokens") or 0)),
        output_tokens=max(0, int(usage.get("output_tokens") or 0)),
        truncated=bool(found.get("is_truncated")),
        scoring_s=scoring_s,
        errors=errors[:ERRORS_MAX],
        messages=_messages(found),
    )


def _scores(env: Any, found: dict[str, Any], failed: set[str]) -> tuple[dict[str, float | None], dict[str, float]]:
    """(rewards, metrics): what has a weight, and what has none. A part that failed is a reward without a score."""
    weight_of = weights(env.rubric)
    scores = {name: None if name in failed or not is_score(value) else value for name, value in found.items()}
    scores |= {name: None for name in failed if name not in scores}
    named = [(clean(str(name), NAME_CHARS), weight_of.get(name), value) for name, value in list(scores.items())[:REWARDS_MAX]]
    rewards = {name: value for name, weight, value in named if weight or value is None}
    return rewards, {name: value for name, weight, value in named if not weight and value is not None}


def _messages(found: Any) -> list[dict[str, Any]]:
    said = [*_listed(found.get("prompt")), *_listed(found.get("completion"))]
    return [_display(message) for message in said[-MESSAGES_MAX:]]


def _listed(messages: Any) -> list[Any]:
    return messages if isinstance(messages, list) else []


def _display(message: Any) -> dict[str, Any]:
    shown: dict[str, Any] = {"role": str(field(message, "role")), "content": clean(text_of(message), MESSAGE_CHARS)}
    if calls := field(message, "tool_calls"):
        shown["tool_calls"] = [_display_call(call) for call in calls[:ERRORS_MAX]]
    return shown


def _display_call(call: Any) -> dict[str, str]:
    name, arguments = str(field(call, "name")), str(field(call, "arguments"))
    return {"name": clean(name, NAME_CHARS), "arguments": clean(arguments, MESSAGE_CHARS)}
