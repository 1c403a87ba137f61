"""Engines over HTTP, for the gateway: one asynchronous client a loop, chat completions, and loading what is missing.

Knows addresses, deadlines and how engines fail. Refuses to know teams, rows and money. Raises the gateway's own errors.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakKeyDictionary

import httpx
from django.conf import settings

from controlplane.inference.access import Route
from controlplane.inference.errors import ContextExceeded, EngineAway, EngineRejects

CHAT_PATH = "/v1/chat/completions"
LOAD_PATH = "/v1/load_lora_adapter"
SILENCE_S = 120.0
"""An engine that sends nothing for this long is taken for dead."""
TIMEOUT_S = httpx.Timeout(SILENCE_S, connect=5.0, pool=10.0)
LIMITS = httpx.Limits(max_connections=2_000, max_keepalive_connections=200)

_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()


@asynccontextmanager
async def chat(route: Route, body: dict[str, Any]) -> AsyncIterator[httpx.Response]:
    """The engine's reply with its head read and its body still to come. Leaving early aborts the engine's work.

    An engine that has lost the adapter (a restart) is told to load it, once. Raises EngineAway and EngineRejects.
    """
    response = await _send(route, body)
    try:
        if response.status_code == 404 and route.adapter is not None:
            await response.aclose()
            await _load_everywhere(route)
            response = await _send(route, body)
        if not response.is_success:
            await response.aread()
            raise _failure(response, route)
        yield response
    except httpx.TransportError as error:
        raise EngineAway from error
    finally:
        await response.aclose()


async def _send(route: Route, body: dict[str, Any]) -> httpx.Response:
    request = _client().build_request("POST", route.pool_url.rstrip("/") + CHAT_PATH, json=body)
    try:
        return await _client().send(request, stream=True)
    except httpx.TransportError as error:
        raise EngineAway from error


async def _load_everywhere(route: Route) -> None:
    """Any replica may get the next request, so each must hold the adapter. Loading what is loaded is free."""
    assert route.adapter is not None
    order = route.adapter.model_dump(mode="json")
    try:
        replies = await asyncio.gather(*(_client().post(url.rstrip("/") + LOAD_PATH, json=order) for url in route.engine_urls))
    except httpx.TransportError as error:
        raise EngineAway from error
    if not all(reply.is_success for reply in replies):
        raise EngineAway("the adapter cannot be loaded at the moment")


def _client() -> httpx.AsyncClient:
    """Connections belong to a loop; a process has one, tests have several."""
    loop = asyncio.get_running_loop()
    if loop not in _clients:
        headers = {"Authorization": f"Bearer {settings.POOL_TOKEN}"} if settings.POOL_TOKEN else {}
        _clients[loop] = httpx.AsyncClient(timeout=TIMEOUT_S, limits=LIMITS, headers=headers)
    return _clients[loop]


def _failure(response: httpx.Response, route: Route) -> EngineAway | EngineRejects:
    """A 4xx about the request itself is the caller's to hear, under the name that the caller knows; the rest is ours."""
    try:
        told = json.loads(response.content)["error"]
        message = str(told["message"]).replace(route.engine_name, route.public_name)
    except (ValueError, KeyError, TypeError):
        return EngineAway()
    if response.status_code in {400, 413, 422}:
        kind = ContextExceeded if told.get("code") == ContextExceeded.code else EngineRejects
        return kind(message, code=told.get("code"), param=told.get("param"))
    return EngineAway()
