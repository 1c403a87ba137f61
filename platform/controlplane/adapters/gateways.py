"""An engine's adapter slots over HTTP: which versions it holds, load one, drop one. Called from workers alone.

Knows vLLM's addresses and the errors they answer with (trainer/contracts/generation.py). Refuses to know rows and wishes.
"""

from typing import Protocol, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from controlplane.adapters.errors import EngineRefused, EngineUnreachable
from trainer.contracts.generation import AdapterLoaded, LoadAdapter, ModelCard, UnloadAdapter

TIMEOUT_S = httpx.Timeout(60.0, connect=5.0)
ERROR_TEXT_MAX = 500
UNDECIDED = frozenset({408, 429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed later."""

B = TypeVar("B", bound=BaseModel)


class EngineGateway(Protocol):
    """Every call names the engine by its URL. Raises EngineUnreachable (try later) or EngineRefused (never will)."""

    def loaded(self, url: str) -> dict[str, str]:
        """Digest by name of everything that the engine answers as."""

    def load(self, url: str, adapter: LoadAdapter) -> AdapterLoaded: ...

    def unload(self, url: str, name: str) -> None:
        """An unknown name is no error: the aim is that it is not there."""


class _Cards(BaseModel):
    data: list[ModelCard]


class HttpEngines:
    """Engines that speak vLLM's HTTP."""

    def __init__(self, *, token: str | None) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._client = httpx.Client(timeout=TIMEOUT_S, headers=headers)

    def __enter__(self) -> "HttpEngines":
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def loaded(self, url: str) -> dict[str, str]:
        reply = _usable(self._send("GET", url, "/v1/models"), "/v1/models")
        return {card.id: card.digest for card in _parsed(_Cards, reply).data}

    def load(self, url: str, adapter: LoadAdapter) -> AdapterLoaded:
        path = "/v1/load_lora_adapter"
        return _parsed(AdapterLoaded, _usable(self._send("POST", url, path, adapter), path))

    def unload(self, url: str, name: str) -> None:
        path = "/v1/unload_lora_adapter"
        reply = self._send("POST", url, path, UnloadAdapter(lora_name=name))
        if reply.status_code != 404:
            _usable(reply, path)

    def _send(self, method: str, url: str, path: str, body: BaseModel | None = None) -> httpx.Response:
        try:
            return self._client.request(method, url.rstrip("/") + path, json=body.model_dump(mode="json") if body else None)
        except httpx.TransportError as error:
            raise EngineUnreachable(f"{path}: {type(error).__name__}") from error


def _usable(reply: httpx.Response, path: str) -> httpx.Response:
    if reply.is_success:
        return reply
    text = f"{path} answered {reply.status_code}: {reply.text[:ERROR_TEXT_MAX]}"
    raise EngineUnreachable(text) if reply.status_code in UNDECIDED else EngineRefused(text)


def _parsed(shape: type[B], reply: httpx.Response) -> B:
    try:
        return shape.model_validate_json(reply.content)
    except ValidationError as error:
        raise EngineUnreachable(f"an engine answered in another shape: {error.error_count()} problems") from error
