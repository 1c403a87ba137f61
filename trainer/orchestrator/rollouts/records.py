"""Accounted rollouts as the control plane takes them: a summary row each, and one compressed body per step with everything.

Knows the report's shapes. Refuses to decide: what was trained, billed or dropped stands in `Accounted`. Bills are sums over
exactly these rows, so that anyone can recompute them from the bodies.
"""

import base64
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import zstandard

from trainer.contracts.events import Meter
from trainer.contracts.internal import RolloutBatch, RolloutSummary, UsageIn
from trainer.orchestrator.proxy.sessions import Call
from trainer.orchestrator.proxy.token_texts import TokenTexts
from trainer.orchestrator.rollouts.branches import Place, fits, merge_calls
from trainer.orchestrator.rollouts.rollout import Accounted, Trace

PREVIEW_MAX = 500
TASK_PREVIEW_MAX = 200
ERROR_MAX = 1_000


def rollout_batch(accounted: list[Accounted], *, step: int, tag: str = "train", texts: TokenTexts | None = None) -> RolloutBatch:
    """`texts` adds the text of every token id that occurs, so that the record can be read without the model."""
    body = b"".join(json.dumps(_body(item, texts), separators=(",", ":")).encode() + b"\n" for item in accounted)
    packed = zstandard.ZstdCompressor(level=3).compress(body)
    return RolloutBatch(
        step=step,
        tag=tag,
        summaries=[summary(item) for item in accounted],
        body_zstd_b64=base64.b64encode(packed).decode(),
        body_sha256=hashlib.sha256(packed).hexdigest(),
    )


def rollout_usage(accounted: Iterable[Accounted], *, sequence: str) -> list[UsageIn]:
    """Tokens of the billed rollouts, as the proxy counted them: those of the policy, and apart from them those of each agent that
    another model plays, under a sequence that ends with the agent's name."""
    billed: dict[str, list[Call]] = defaultdict(list)
    for item in accounted:
        for call in _calls(item) if item.billed else ():
            billed[call.seat].append(call)
    now = datetime.now(UTC)
    return [
        UsageIn(meter=meter, sequence=f"{sequence}.seat.{seat}" if seat else sequence, quantity=quantity, at=now)
        for seat, calls in sorted(billed.items())
        for meter, quantity in _quantities(calls).items()
        if quantity
    ]


def _quantities(calls: list[Call]) -> dict[Meter, int]:
    return {
        Meter.ROLLOUT_INPUT_TOKENS: sum(call.input_tokens for call in calls),
        Meter.ROLLOUT_OUTPUT_TOKENS: sum(call.output_tokens for call in calls),
    }


def summary(item: Accounted) -> RolloutSummary:
    rollout, outcome = item.rollout, item.rollout.outcome
    assert outcome is not None
    calls = _calls(item)
    return RolloutSummary(
        rollout_id=rollout.rollout_id,
        group_id=rollout.group_id,
        environment=rollout.environment,
        task=rollout.task,
        task_key=rollout.task_key,
        rollout_number=rollout.number,
        task_preview=rollout.preview[:TASK_PREVIEW_MAX],
        state=item.state,
        reward=outcome.reward,
        rewards=outcome.rewards,
        metrics=outcome.metrics,
        advantage=rollout.advantage if item.trained else None,
        trained=item.trained,
        policy_version_min=rollout.version,
        policy_version_max=rollout.version,
        staleness=item.staleness,
        turns=outcome.turns,
        input_tokens=sum(call.input_tokens for call in calls),
        output_tokens=sum(call.output_tokens for call in calls),
        billed=item.billed,
        duration_s=rollout.duration_s,
        stop=outcome.stop,
        error=outcome.error[:ERROR_MAX] if outcome.error else None,
        preview=_preview(item),
    )


def _calls(item: Accounted) -> list[Call]:
    return item.rollout.outcome.calls if item.rollout.outcome else []


def _preview(item: Accounted) -> str:
    """The last thing the policy said, or the task where it said nothing."""
    outcome = item.rollout.outcome
    for trace in outcome.traces if outcome else ():
        for message in reversed(trace.report.messages):
            content = message.get("content")
            if message.get("role") == "assistant" and isinstance(content, str) and content:
                return content[:PREVIEW_MAX]
    return item.rollout.preview[:PREVIEW_MAX]


def _body(item: Accounted, texts: TokenTexts | None) -> dict[str, Any]:
    row = summary(item).model_dump()
    outcome = item.rollout.outcome
    used = {token for call in _calls(item) for token in (*call.prompt_ids, *call.token_ids)}
    return row | {
        "policy_version": item.rollout.version,
        "traces": [_trace(trace, item) for trace in (outcome.traces if outcome else ())],
        "texts": texts.of(used) if texts else {},
    }


def _trace(trace: Trace, item: Accounted) -> dict[str, Any]:
    """The runner's report beside the calls. `branches` are the flat token streams that the calls make up, in the order in which
    `calls[].branch` counts them; `trained` says whether the batch had the stream."""
    report = trace.report.model_dump(mode="json")
    generated = [call for call in trace.calls if call.route == "generate"]
    merged = merge_calls(generated)
    places: dict[int, Place] = {id(call): place for call, place in zip(generated, merged.places, strict=True)}
    learns = item.trained and trace.report.trainable
    branches = [
        {"tokens_count": len(branch.token_ids), "sampled_count": sum(branch.mask), "trained": learns and fits(branch)}
        for branch in merged.branches
    ]
    calls = [_call(call, places.get(id(call)), since_s=item.rollout.started_s) for call in trace.calls]
    return report | {"calls": calls, "branches": branches}


def _call(call: Call, place: Place | None, *, since_s: float) -> dict[str, Any]:
    """A chat call has no tokens and no place. `offset_s` counts from the rollout's dispatch."""
    return {
        "branch": place.branch if place else None,
        "start": place.start if place else 0,
        "offset_s": round(max(0.0, call.started_s - since_s), 4),
        "duration_s": round(call.duration_s, 4),
        "route": call.route,
        "engine_name": call.engine_name,
        "seat": call.seat,
        "adapter_digest": call.adapter_digest,
        "prompt_ids": call.prompt_ids,
        "token_ids": call.token_ids,
        "logprobs": call.logprobs,
        "temperature": call.temperature,
        "finish_reason": call.finish_reason,
        "routed_experts": call.routed_experts and call.routed_experts.model_dump(),
        "multimodal": call.multimodal and call.multimodal.model_dump(),
        "usage": {"input_tokens": call.input_tokens, "output_tokens": call.output_tokens},
    }
