"""Requests and answers of the gateway: the part of OpenAI's chat completions that our engines honour.

Knows names, types and ranges. A parameter that is not here is refused by name and never passed on: the engine's own controls
(`cache_salt` above all) are not the caller's.
"""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from controlplane.core.schemas import Answer, Body, example
from controlplane.inference.models import InferenceRequest, RequestStatus
from trainer.contracts.generation import TOKENS_OUT_MAX

MESSAGES_MAX = 2_048
TOOLS_MAX = 128
NO_EFFECT = frozenset({"user", "metadata", "store", "parallel_tool_calls", "service_tier"})
"""Known parameters that change nothing here. Accepted, since common clients send them; not passed on."""


class Message(BaseModel):
    """One turn. What a role needs beyond `content` (tool calls, names) is the engine's chat template's business."""

    model_config = ConfigDict(extra="allow", frozen=True)

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[dict[str, Any]] | None = None


class StreamOptions(Body):
    include_usage: bool = False


class ChatRequest(Body):
    model_config = example({"model": "tiny", "messages": [{"role": "user", "content": "3+4?"}], "max_tokens": 16})

    model: Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[^\x00]+$")]
    messages: Annotated[list[Message], Field(min_length=1, max_length=MESSAGES_MAX)]
    max_tokens: Annotated[int, Field(ge=1, le=TOKENS_OUT_MAX)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1, le=TOKENS_OUT_MAX)] | None = None
    temperature: Annotated[float, Field(ge=0, le=5)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=-1)] | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    n: Literal[1] | None = None
    seed: int | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    response_format: dict[str, Any] | None = None
    stop: Annotated[str, Field(min_length=1)] | Annotated[list[str], Field(max_length=16)] | None = None
    stream: bool = False
    stream_options: StreamOptions | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = None
    tools: Annotated[list[dict[str, Any]], Field(max_length=TOOLS_MAX)] | None = None
    tool_choice: Literal["none", "auto", "required"] | dict[str, Any] | None = None

    @model_validator(mode="before")
    @classmethod
    def _drop_what_has_no_effect(cls, given: Any) -> Any:
        return {name: value for name, value in given.items() if name not in NO_EFFECT} if isinstance(given, dict) else given

    @model_validator(mode="after")
    def _one_limit(self) -> Self:
        if self.max_tokens is not None and self.max_completion_tokens is not None:
            raise ValueError("give one of max_tokens and max_completion_tokens")
        return self

    @property
    def wants_usage(self) -> bool:
        """Whether the caller asked for the chunk with the usage at the end of a stream."""
        return self.stream_options is not None and self.stream_options.include_usage

    def engine_body(self, *, engine_name: str, cache_salt: str) -> dict[str, Any]:
        """What the engine is sent: only what the caller set, under the engine's names, and our own controls."""
        body = self.model_dump(exclude_none=True, exclude={"model", "max_completion_tokens", "stream_options", "n"})
        if self.max_completion_tokens is not None:
            body["max_tokens"] = self.max_completion_tokens
        if self.stream:
            # Token ids with every chunk, so that an aborted stream is billed for what it streamed and not a token more.
            body |= {"stream_options": {"include_usage": True}, "return_token_ids": True}
        return body | {"model": engine_name, "cache_salt": cache_salt}


class Choice(BaseModel):
    """One answer of the model."""

    model_config = ConfigDict(extra="allow")

    index: int
    message: Message
    finish_reason: str | None


class Usage(BaseModel):
    model_config = ConfigDict(extra="allow")

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatCompletion(BaseModel):
    """OpenAI's answer as the engine gave it, under our id and the model's public name. Only the document reads this."""

    model_config = ConfigDict(extra="allow")

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: Usage


class Pricing(Answer):
    input_usd_per_mtok: float
    output_usd_per_mtok: float


class ModelSpecs(Answer):
    context_window: int
    max_output_tokens: int
    supports_reasoning: bool = False


class ModelRow(Answer):
    """A base model, or one of the caller's deployed adapters, whose `parent` is its base."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str
    display_name: str
    serving: Literal["hosted"] = "hosted"
    parent: str | None = None
    adapter_digest: str | None = None
    pricing: Pricing | None
    specs: ModelSpecs


class ModelList(Answer):
    object: Literal["list"] = "list"
    data: list[ModelRow]


class RequestRow(Answer):
    """One request as the gateway recorded it."""

    id: str
    created_at: datetime
    model: str
    base_model: str
    adapter_id: str | None
    adapter_digest: str | None
    is_stream: bool
    status: RequestStatus
    error_code: str | None
    input_tokens_count: int
    output_tokens_count: int
    duration_s: float
    ttft_s: float | None

    @classmethod
    def of(cls, row: InferenceRequest) -> Self:
        return cls(
            id=row.pk,
            created_at=row.created_at,
            model=row.model,
            base_model=row.base_model,
            adapter_id=row.adapter_id or None,
            adapter_digest=row.adapter_digest or None,
            is_stream=row.is_stream,
            status=RequestStatus(row.status),
            error_code=row.error_code or None,
            input_tokens_count=row.input_tokens_count,
            output_tokens_count=row.output_tokens_count,
            duration_s=row.duration_s,
            ttft_s=row.ttft_s,
        )


class RequestPage(Answer):
    items: list[RequestRow]
    next_cursor: str | None
