"""Tool servers inside this process instead of one Python interpreter each.

Knows how the library launches a toolset, and takes that one function's place for toolsets placed in a subprocess: the library's
way costs three seconds of processor time per rollout and, for a module without a main guard, three minutes of silence. Refuses to
know tools. The contract kept: same setup calls, same state channel, same URL shape.
"""

import asyncio
import hmac
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import parse_qs

import httpx
import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from verifiers.v1.errors import ToolsetError, boundary
from verifiers.v1.mcp import launch
from verifiers.v1.mcp import server as library
from verifiers.v1.runtimes import SubprocessConfig, provision_runtime

_launch_by_library = launch._serve
_POLL_S = 0.002
_STOP_S = 2.0

StateChannel = Callable[[], tuple[str | None, str, str | None]]
"""() → (state URL, secret, route of the rollout) for the request being served."""


def install() -> None:
    """From now on `Toolset` servers are served here."""
    launch._serve = _serve


@asynccontextmanager
async def _serve(
    tool: library.ServerBase,
    harness_runtime: Any = None,
    harness_is_local: bool = True,
    *,
    state_secret: str = "",
    state_base: str | None = None,
) -> AsyncIterator[Any]:
    if not isinstance(tool.config.runtime, SubprocessConfig):
        secrets = {"state_secret": state_secret, "state_base": state_base}
        async with _launch_by_library(tool, harness_runtime, harness_is_local, **secrets) as served:
            yield served
        return
    state_url = f"{state_base.rstrip('/')}/state" if state_base else None
    tool._state_channel = _state_channel(state_url, state_secret)
    async with AsyncExitStack() as stack:
        runtime = harness_runtime or await stack.enter_async_context(provision_runtime(tool.config.runtime))
        await _set_up(tool, stack, state_url, state_secret)
        port = await stack.enter_async_context(_listen(_application(tool), tool.server_name))
        yield launch._ServedServer(f"http://127.0.0.1:{port}/mcp", runtime)


def _state_channel(state_url: str | None, secret: str) -> StateChannel:
    """Task servers have a fixed channel; a shared server reads signed coordinates from each request's query."""

    def channel() -> tuple[str | None, str, str | None]:
        if state_url:
            return state_url, secret, None
        parameters = (library.STATE_URL_PARAM, library.STATE_ROUTE_PARAM, library.STATE_SIGNATURE_PARAM)
        url, route, signature = (library._request_query(name) for name in parameters)
        if not any((url, route, signature)):
            return None, "", None
        if not (secret and url and route and signature):
            raise ValueError("incomplete coordinates of the shared state")
        if not hmac.compare_digest(signature, library.state_signature(secret, url, route)):
            raise ValueError("forged coordinates of the shared state")
        return url, secret, route

    return channel


async def _set_up(tool: library.ServerBase, stack: AsyncExitStack, state_url: str | None, secret: str) -> None:
    async with boundary(ToolsetError, f"tool server {tool.server_name!r} setup"):
        await stack.enter_async_context(tool._exit_stack)
        client = httpx.AsyncClient(timeout=library.STATE_TIMEOUT, verify=False, trust_env=False)
        tool._state_client = await stack.enter_async_context(client)
        await tool.setup()
        await tool._setup_task_from_channel(state_url, secret)


def _application(tool: library.ServerBase) -> Callable[..., Awaitable[None]]:
    mcp = MCPServer(tool.server_name or type(tool).__name__)
    tool.register(mcp)
    # Loopback of a box without network: there is no page that could rebind a name to it.
    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    inner = mcp.streamable_http_app(json_response=True, stateless_http=True, transport_security=security)

    async def application(scope: dict, receive: Any, send: Any) -> None:
        query = scope.get("query_string", b"").decode() if scope["type"] == "http" else None
        token = library._request_query_params.set(None if query is None else parse_qs(query, keep_blank_values=True))
        try:
            await inner(scope, receive, send)
        finally:
            library._request_query_params.reset(token)

    return application


@asynccontextmanager
async def _listen(application: Callable[..., Awaitable[None]], name: str) -> AsyncIterator[int]:
    """The port that `application` answers on, until the block is left."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(application, log_level="critical", access_log=False))
    # The public serve() would take over this process's signal handlers.
    task = asyncio.create_task(server._serve(sockets=[listener]))
    try:
        while not server.started:
            if task.done():
                raise ToolsetError(f"tool server {name!r} did not start")
            await asyncio.sleep(_POLL_S)
        yield listener.getsockname()[1]
    finally:
        server.should_exit = server.force_exit = True
        await asyncio.wait({task}, timeout=_STOP_S)
        listener.close()
