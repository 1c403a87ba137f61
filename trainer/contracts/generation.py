"""HTTP of an engine: vLLM's shapes, with the adapter's identity added to each reply.

  GET  /health                       200 once a real one-token generation has succeeded lately, else 503
  GET  /metrics                      Prometheus text
  GET  /v1/models                    {"object": "list", "data": [ModelCard]}
  POST /v1/chat/completions          OpenAI chat completions (stream and not, logprobs)
  POST /inference/v1/generate        GenerateRequest -> GenerateReply
  POST /inference/v1/score           ScoreRequest -> ScoreReply   (one prefill, nothing is sampled)
  POST /v1/load_lora_adapter         LoadAdapter -> AdapterLoaded
  POST /v1/unload_lora_adapter       UnloadAdapter -> 200   (waits for no one: a version goes once no request holds it)

Chat replies and the last chunk of a stream carry `adapter` (AdapterIdentity), `usage`, and `system_fingerprint` (the digest).
Errors are OpenAI's: {"error": {"message", "type", "code", "param"}}; 404 for an unknown model, 400 for a bad parameter,
409 when a name is loaded already under another digest, 503 when saturated.
"""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from trainer.contracts.base import Sha256, Wire

TOKENS_OUT_MAX = 32_768


class AdapterIdentity(Wire):
    """Which weights answered. A base-model reply has the base's id and the base weights' digest."""

    name: str
    digest: Sha256


class SamplingParams(Wire):
    """The subset of vLLM's sampling parameters that the engine honours. Unknown ones are refused by name by the server, except
    those that clients are known to send with no effect here."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    temperature: Annotated[float, Field(ge=0, le=5)] = 1.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    top_k: int = -1
    min_p: Annotated[float, Field(ge=0, le=1)] = 0.0
    max_tokens: Annotated[int, Field(ge=1, le=TOKENS_OUT_MAX)] = 512
    stop_token_ids: list[int] = []
    seed: int | None = None
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    ignore_eos: bool = False
    skip_special_tokens: bool = True


class ContentPart(Wire):
    """A picture of the prompt, in the order of the token ids that stand for it. `url` is a data: URL."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    type: Literal["image_url", "audio_url", "video_url"]
    url: str


class RoutedExperts(Wire):
    """Which experts each token took: an array of `shape` (tokens, layers, experts a token) in base64, from token `start` on."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    data: str
    dtype: Literal["uint8", "uint16", "int16", "int32"] = "uint8"
    shape: Annotated[list[int], Field(min_length=3, max_length=3)]
    start: Annotated[int, Field(ge=0)] = 0


class GenerateRequest(Wire):
    """Token ids in. `cache_salt` separates tenants in every prefix cache."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    model: str
    token_ids: Annotated[list[int], Field(min_length=1)]
    sampling_params: SamplingParams = SamplingParams()
    cache_salt: str = ""
    content_parts: Annotated[list[ContentPart], Field(max_length=256)] = []
    """Only for base models that read pictures; the reply then has `prompt_token_ids` and `mm_placeholders`."""


class TokenLogprob(Wire):
    """`token` is spelled `token_id:<N>`, which the pinned renderers insist on."""

    token: str
    logprob: float


class LogprobContent(Wire):
    content: list[TokenLogprob]


class GenerateChoice(Wire):
    index: int = 0
    token_ids: list[int]
    logprobs: LogprobContent
    finish_reason: Literal["stop", "length", "abort"]
    routed_experts: RoutedExperts | None = None
    """Of base models with experts, prompt included."""


class Usage(Wire):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class GenerateReply(Wire):
    """One finite log-probability per sampled token, taken from the distribution at the sampling temperature."""

    id: str
    request_id: str
    model: str
    choices: list[GenerateChoice]
    usage: Usage
    adapter: AdapterIdentity
    prompt_logprobs: list[dict[str, TokenLogprob] | None] | None = None
    prompt_token_ids: list[int] | None = None
    mm_placeholders: dict[str, Any] | None = None


class ScoreRequest(Wire):
    """T token ids of which each but the first is looked up in the distribution that those before it give at `temperature`.
    `model` is named as for generate: the base model, or an adapter's engine name."""

    model: str
    token_ids: Annotated[list[int], Field(min_length=2)]
    temperature: Annotated[float, Field(gt=0, le=5)] = 1.0
    cache_salt: str = ""


class ScoreReply(Wire):
    """`logprobs` has T entries; entry t belongs to `token_ids[t]` itself, and entry 0 is None: nothing precedes it."""

    id: str
    request_id: str
    model: str
    logprobs: list[float | None]
    usage: Usage
    adapter: AdapterIdentity


class LoadAdapter(Wire):
    """`lora_path` is absolute on the engine's host. With `digest` the engine refuses files that hash to another value."""

    lora_name: str
    lora_path: str
    digest: Sha256 | None = None


class AdapterLoaded(Wire):
    lora_name: str
    digest: Sha256
    load_s: float
    requests_in_flight: int
    """Sequences that were decoding when the adapter became available: proof that a swap happens under load."""


class UnloadAdapter(Wire):
    lora_name: str


class ModelCard(Wire):
    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "rootstock"
    root: str
    parent: str | None = None
    max_model_len: int
    digest: Sha256
