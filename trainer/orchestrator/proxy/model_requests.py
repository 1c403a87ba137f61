"""What a model call from the sandbox may ask for: the pins that make a rollout ours to train on and to bill.

Knows which fields pass, which are set by us, and which are refused. Refuses to know HTTP and sessions. Pure.
"""

import math
from dataclasses import dataclass
from typing import Any

from trainer.contracts.generation import GenerateReply, GenerateRequest, LogprobContent, SamplingParams, TokenLogprob

CHAT_FIELDS = frozenset(
    {"messages", "stop", "stream", "stream_options", "tools", "tool_choice", "parallel_tool_calls", "logprobs", "top_logprobs"}
)
"""Fields of a chat request that pass as they are; everything else is either pinned here or dropped."""


TEXT_ALONE = "the base model reads text alone; leave pictures out of the messages, or train a model that reads them"


class BadModelRequest(ValueError):
    """The call cannot be served; the text says which field is wrong."""


class EngineContradiction(Exception):
    """An engine's reply that cannot be true: wrong weights, or token ids and log-probabilities that do not align."""


@dataclass(frozen=True, slots=True)
class Pins:
    """Set on every call of an attempt. The sampling distribution must be the one that the trainer recomputes, therefore
    top_p, top_k and min_p are off."""

    cache_salt: str
    temperature: float
    max_tokens: int
    context_tokens: int
    pictures: bool = False
    """Whether the base model reads them."""


@dataclass(frozen=True, slots=True)
class SeatPins:
    """The model that plays an agent instead of the policy, and how it samples."""

    engine_name: str
    pins: Pins


def pinned_generate(body: bytes, pins: Pins) -> GenerateRequest:
    """The request that goes to the engine. Raises BadModelRequest (pydantic's ValidationError is one)."""
    asked = GenerateRequest.model_validate_json(body)
    if asked.content_parts and not pins.pictures:
        raise BadModelRequest(f"content_parts.0: {asked.content_parts[0].type}: {TEXT_ALONE}")
    room = pins.context_tokens - len(asked.token_ids)
    if room < 1:
        raise BadModelRequest(f"token_ids: {len(asked.token_ids)} tokens leave no room in a context of {pins.context_tokens}")
    sampling = SamplingParams(
        temperature=pins.temperature,
        max_tokens=min(asked.sampling_params.max_tokens, pins.max_tokens, room),
        stop_token_ids=asked.sampling_params.stop_token_ids,
        logprobs=1,
        skip_special_tokens=asked.sampling_params.skip_special_tokens,
    )
    return asked.model_copy(update={"sampling_params": sampling, "cache_salt": pins.cache_salt})


def pinned_chat(asked: dict[str, Any], pins: Pins) -> dict[str, Any]:
    """The chat request that goes to the engine: usage is always asked for, since bills need it."""
    if asked.get("n") not in (None, 1):
        raise BadModelRequest(f"n: one choice a call is served here, {asked['n']} were asked for")
    if not pins.pictures:
        _refuse_pictures(asked.get("messages"))
    wanted = asked.get("max_completion_tokens") or asked.get("max_tokens") or pins.max_tokens
    if not isinstance(wanted, int) or wanted < 1:
        raise BadModelRequest("max_tokens: a positive integer is needed")
    request = {name: value for name, value in asked.items() if name in CHAT_FIELDS}
    request |= {
        "model": asked.get("model"),
        "max_tokens": min(wanted, pins.max_tokens),
        "temperature": pins.temperature,
        "cache_salt": pins.cache_salt,
    }
    if request.get("stream"):
        request["stream_options"] = {"include_usage": True}
    return request


def _refuse_pictures(messages: Any) -> None:
    for number, message in enumerate(messages if isinstance(messages, list) else ()):
        content = message.get("content") if isinstance(message, dict) else None
        for place, part in enumerate(content if isinstance(content, list) else ()):
            kind = part.get("type") if isinstance(part, dict) else None
            if kind not in (None, "text"):
                raise BadModelRequest(f"messages.{number}.content.{place}: {kind}: {TEXT_ALONE}")


def checked_generate(reply: GenerateReply, *, digest: str) -> GenerateReply:
    """The reply with log-probabilities spelled `token_id:N`, as the pinned renderers insist. Raises EngineContradiction."""
    if reply.adapter.digest != digest:
        raise EngineContradiction(f"answered with weights {reply.adapter.digest[:12]}, but {reply.model} has {digest[:12]}")
    if len(reply.choices) != 1:
        raise EngineContradiction(f"answered {len(reply.choices)} choices for one")
    choice = reply.choices[0]
    logprobs = [entry.logprob for entry in choice.logprobs.content]
    if len(logprobs) != len(choice.token_ids) or not all(math.isfinite(value) for value in logprobs):
        raise EngineContradiction(
            f"{len(choice.token_ids)} token ids came with {len(logprobs)} log-probabilities or non-finite ones"
        )
    content = [
        TokenLogprob.model_construct(token=f"token_id:{token}", logprob=value)
        for token, value in zip(choice.token_ids, logprobs, strict=True)
    ]
    spelled = choice.model_copy(update={"logprobs": LogprobContent.model_construct(content=content)})
    return reply.model_copy(update={"choices": [spelled]})
