"""Model calls of one rollout: each says which trace it belongs to, and is remembered if it failed.

Knows the library's two clients and their errors. Refuses to know rewards. The library calls an empty reply an error; here it is a
reply, as it is for every other environment, and what is said with it is for the reward to judge.
"""

import importlib
from functools import cache
from typing import Any

import openai
from pydantic import TypeAdapter
from renderers import RendererConfig, create_renderer
from renderers.base import load_tokenizer
from renderers.client import MalformedGenerateResponseError
from verifiers.clients.openai_chat_completions_client import OpenAIChatCompletionsClient
from verifiers.clients.renderer_client import RendererClient
from verifiers.errors import EmptyModelResponseError
from verifiers.types import ClientConfig, Response
from verifiers.utils.client_utils import setup_openai_client

from trainer.contracts.rollouts import SESSION_HEADER, RolloutRequest, RunnerConfig
from trainer.runner.limits import CALLERS_FAULT

_LONGEST_CALL_S = 86_400.0
"""A rollout's own deadline comes first."""
_CUSTOM = "custom"


class Calls:
    """Mixed into a client of the library. `answered` counts turns; `is_ours` says whose fault it is that there are no more."""

    session_id: str
    answered = 0
    _waiting = 0
    _failure: Exception | None = None

    @property
    def is_ours(self) -> bool:
        """Whether the last call failed for no fault of the request, or is still unanswered."""
        failure = self._failure
        if isinstance(failure, openai.APIStatusError):
            return failure.status_code not in CALLERS_FAULT
        return self._waiting > 0 or isinstance(failure, (openai.APIError, MalformedGenerateResponseError))

    async def get_native_response(self, *arguments: Any, **named: Any) -> Any:
        named["extra_headers"] = {**(named.get("extra_headers") or {}), SESSION_HEADER: self.session_id}
        self._waiting += 1  # stays if this call is cancelled
        self._failure = None
        try:
            response = await super().get_native_response(*arguments, **named)  # type: ignore[misc]
        except Exception as error:
            self._waiting -= 1
            self._failure = error
            raise
        self._waiting -= 1
        self.answered += 1
        return response

    async def raise_from_native_response(self, response: Any) -> None:
        try:
            await super().raise_from_native_response(response)  # type: ignore[misc]
        except EmptyModelResponseError:
            if response is None or getattr(response, "choices", True) is None:
                raise

    async def from_native_response(self, response: Any) -> Response:
        read: Response = await super().from_native_response(response)  # type: ignore[misc]
        if read.message.content is None:
            read.message.content = ""
        return read


class TrainedClient(Calls, RendererClient):
    """Token ids to the engine and back, so that what is trained on is what was sampled."""


class AskedClient(Calls, OpenAIChatCompletionsClient):
    """Chat completions, for evaluations."""


class Endpoint:
    """The model as this environment's rollouts reach it. Raises what an unknown renderer raises, before any rollout."""

    def __init__(self, config: RunnerConfig) -> None:
        address = ClientConfig(
            api_key_var=config.api_key_var, api_base_url=config.base_url, max_retries=0, timeout=_LONGEST_CALL_S
        )
        self._http = setup_openai_client(address)
        self._renderer = _renderer(config) if config.tokenizer_path else None

    def client(self, request: RolloutRequest) -> TrainedClient | AskedClient:
        """For one rollout, whose trace has the rollout's id."""
        client = AskedClient(self._http) if request.client == "eval" else TrainedClient(self._http, renderer=self._renderer)
        client.session_id = request.rollout_id
        return client


def _renderer(config: RunnerConfig) -> Any:
    """Of the base model, as the catalogue names it. An import path is ours to follow: this library knows none."""
    options = dict(config.renderer)
    tokenizer = _tokenizer(config.tokenizer_path)
    if options.pop("name", None) != _CUSTOM:
        return create_renderer(tokenizer, TypeAdapter(RendererConfig).validate_python(config.renderer))
    module, _, name = options.pop("import_path").rpartition(".")
    made = getattr(importlib.import_module(module), name)
    return made(tokenizer, made.config_class.model_validate(options))


@cache
def _tokenizer(path: str) -> Any:
    return load_tokenizer(path)
