"""What a chat request and a generate request may say: parsing, refusal by name, and the sampling that follows from it.

Knows OpenAI's and vLLM's spelling. A parameter that this engine does not implement is accepted only with the value that means
nothing; with any other value the request is refused, because a silently ignored parameter is a wrong answer.
"""

import json
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from trainer.contracts.generation import TOKENS_OUT_MAX, GenerateRequest, SamplingParams
from trainer.inference.errors import BadRequest

INERT = frozenset(
    {
        "user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key", "prompt_cache_retention",
        "parallel_tool_calls", "priority", "request_id", "routed_experts_prompt_start", "detokenize",
        "spaces_between_special_tokens", "include_reasoning", "vllm_xargs",
    }
)  # fmt: skip
"""Sent by clients with no effect on an answer of this engine."""

NEUTRAL: dict[str, tuple[Any, ...]] = {
    "n": (1, None),
    "best_of": (1, None),
    "presence_penalty": (0, None),
    "frequency_penalty": (0, None),
    "repetition_penalty": (1, None),
    "length_penalty": (1, None),
    "min_tokens": (0, None),
    "use_beam_search": (False, None),
    "echo": (False, None),
    "logit_bias": (None, {}),
    "stop": (None, []),
    "bad_words": (None, []),
    "include_stop_str_in_output": (False, None),
    "response_format": (None, {"type": "text"}),
    "add_generation_prompt": (True, None),
    "continue_final_message": (False, None),
    "chat_template_kwargs": (None, {}),
}
"""Parameters that are not implemented, and the values with which they ask for nothing."""


class StreamOptions(BaseModel):
    include_usage: bool = False


class ChatRequest(BaseModel):
    """POST /v1/chat/completions. Defaults are OpenAI's; what is missing in `max_tokens` is bounded by the context."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str
    messages: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=4096)]
    max_tokens: Annotated[int, Field(ge=1, le=TOKENS_OUT_MAX)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1, le=TOKENS_OUT_MAX)] | None = None
    temperature: Annotated[float, Field(ge=0, le=5)] | None = None
    top_p: Annotated[float, Field(gt=0, le=1)] | None = None
    top_k: int | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    stop_token_ids: list[int] | None = None
    ignore_eos: bool = False
    skip_special_tokens: bool = True
    stream: bool = False
    stream_options: StreamOptions | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0)] | None = None
    tools: Annotated[list[dict[str, Any]], Field(max_length=256)] | None = None
    tool_choice: Literal["auto", "none"] | None = None
    return_token_ids: bool | None = None
    cache_salt: str = ""

    @property
    def include_usage(self) -> bool:
        return self.stream_options is not None and self.stream_options.include_usage

    @property
    def stop_strings(self) -> tuple[str, ...]:
        strings = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return tuple(text for text in strings if text)

    def sampling(self) -> SamplingParams:
        asked = {
            "temperature": self.temperature,
            "top_p": self.top_p,
            "top_k": self.top_k,
            "min_p": self.min_p,
            "seed": self.seed,
            "stop_token_ids": self.stop_token_ids,
            "max_tokens": self.max_completion_tokens or self.max_tokens or TOKENS_OUT_MAX,
            "ignore_eos": self.ignore_eos,
        }
        return SamplingParams(**{name: value for name, value in asked.items() if value is not None})


Parsed = TypeVar("Parsed", bound=BaseModel)


def parse_chat(body: bytes) -> ChatRequest:
    return _validate(ChatRequest, _meaningful(_object(body), ChatRequest))


def parse_generate(body: bytes) -> GenerateRequest:
    fields = _meaningful(_object(body), GenerateRequest)
    sampling = fields.get("sampling_params")
    if isinstance(sampling, dict):
        fields["sampling_params"] = _meaningful(sampling, SamplingParams)
    return _validate(GenerateRequest, fields)


def parse_wire(kind: type[Parsed], body: bytes) -> Parsed:
    return _validate(kind, _object(body))


def _object(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except ValueError as error:
        raise BadRequest(f"the body is not valid JSON: {error}", code="invalid_json") from error
    if not isinstance(value, dict):
        raise BadRequest("the body must be a JSON object", code="invalid_json")
    return value


def _meaningful(fields: dict[str, Any], kind: type[BaseModel]) -> dict[str, Any]:
    """The fields that the engine acts on. Raises BadRequest for one that it would have to ignore."""
    kept = {}
    for name, value in fields.items():
        if name in kind.model_fields:
            kept[name] = value
        elif name in NEUTRAL:
            if value not in NEUTRAL[name]:
                raise BadRequest(f"{name} = {value!r} is not supported by this engine", param=name, code="unsupported_value")
        elif name not in INERT:
            raise BadRequest(f"unknown parameter '{name}'", param=name, code="unknown_parameter")
    return kept


def _validate(kind: type[Parsed], fields: dict[str, Any]) -> Parsed:
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        param = ".".join(str(part) for part in first["loc"])
        raise BadRequest(f"{param}: {first['msg']}", param=param) from error


def template_messages(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages as chat templates want them: content as text, tool-call arguments as objects."""
    return [_template_message(index, message) for index, message in enumerate(messages)]


def _template_message(index: int, message: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(message.get("role"), str):
        raise BadRequest(f"messages.{index}.role must be a string", param=f"messages.{index}.role")
    rendered = {name: value for name, value in message.items() if value is not None}
    rendered["content"] = _text(message.get("content"), f"messages.{index}.content")
    if message.get("tool_calls"):
        rendered["tool_calls"] = [_template_call(call, f"messages.{index}.tool_calls") for call in message["tool_calls"]]
    return rendered


def _text(content: Any, param: str) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list) and all(isinstance(part, dict) and part.get("type") == "text" for part in content):
        return "".join(str(part.get("text", "")) for part in content)
    raise BadRequest(f"{param} must be text or a list of text parts", param=param)


def _template_call(call: Any, param: str) -> dict[str, Any]:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise BadRequest(f"{param} must hold functions with a name", param=param)
    arguments = function.get("arguments", {})
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            # A model's own broken JSON goes back to it as it said it.
            arguments = function["arguments"]
    return {**call, "function": {**function, "arguments": arguments}}
