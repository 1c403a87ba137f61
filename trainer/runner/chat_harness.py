"""The harness of every seat: a chat loop in this process, with tools over MCP; no shell, no subprocess, no download.

Knows the library's harness interface and the chat-completions shape. Refuses to know the model's address: it talks to the
interception server that it is handed. `register` gives it the id `rootstock-chat`.
"""

import asyncio
import json
import sys
from contextlib import AsyncExitStack
from functools import cache
from typing import Any

import aiohttp
import verifiers.v1 as vf
from verifiers.v1.clients import ModelContext
from verifiers.v1.dialects.chat import message_to_wire
from verifiers.v1.harnesses.utils.mcp import call_mcp, connect_mcp
from verifiers.v1.runtimes import ProgramResult, Runtime

__all__ = ["ChatHarness"]

HARNESS_ID = "rootstock-chat"
_CONNECT_S = 10.0
_ERROR_CHARS = 500

interrupted_calls: set[str] = set()
"""Traces that were cancelled while the model had not answered: their time-out is not the tenant's."""


def register() -> None:
    """Let the library resolve HARNESS_ID: it imports a plugin as a top-level module, which this file is not."""
    sys.modules.setdefault(HARNESS_ID.replace("-", "_"), sys.modules[__name__])


class ChatConfig(vf.HarnessConfig):
    tool_output_max_chars: int = 20_000


class ChatHarness(vf.Harness[ChatConfig]):
    APPENDS_SYSTEM_PROMPT = True
    SUPPORTS_MCP = True
    SUPPORTS_RESUME = True
    SUPPORTS_TOOL_INTERCEPTION = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: ModelContext,
        trace: vf.Trace,
        runtime: Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: vf.TaskData,
        tool_interception_url: str | None = None,
    ) -> ProgramResult:
        gate = _ToolGate(tool_interception_url, secret) if tool_interception_url else None
        messages = self._opening(data)
        async with AsyncExitStack() as stack:
            tools, dispatch, servers = await self._connect(mcp_urls, stack)
            while True:
                body = {"model": ctx.model, "messages": messages} | ({"tools": tools} if tools else {})
                reply = await _ask_model(f"{endpoint}/chat/completions", secret, body, trace.id)
                messages.append({name: value for name, value in reply.items() if value is not None})
                if not reply.get("tool_calls"):
                    return ProgramResult(exit_code=0, stdout=reply.get("content") or "", stderr="")
                for call in reply["tool_calls"]:
                    messages.append(await self._answer(call, dispatch, servers, gate))

    def _opening(self, data: vf.TaskData) -> list[dict[str, Any]]:
        system, prompt = self.resolve_prompt(data)
        messages = [{"role": "system", "content": system}] if system else []
        if isinstance(prompt, str):
            return [*messages, {"role": "user", "content": prompt}]
        return messages + [message_to_wire(message) for message in prompt or []]

    async def _connect(self, urls: dict[str, str], stack: AsyncExitStack) -> tuple[list, dict, dict]:
        if not urls:
            return [], {}, {}
        servers = {name: {"url": url, "timeout": self.config.tool_timeout} for name, url in urls.items()}
        return await connect_mcp({"mcpServers": servers}, stack)

    async def _answer(self, call: dict, dispatch: dict, servers: dict, gate: "_ToolGate | None") -> dict[str, Any]:
        """The tool message for one call. What the model got wrong is told to the model, not raised."""
        name, text = call["function"]["name"], call["function"].get("arguments") or "{}"
        message = {"role": "tool", "tool_call_id": call["id"], "name": name}
        try:
            arguments = json.loads(text)
        except ValueError:
            arguments = None
        if gate and (denied := await gate.ask(call["id"], name, text if arguments is None else arguments)):
            return denied
        if not isinstance(arguments, dict):
            return message | {"content": "error: tool arguments must be one JSON object"}
        if name not in dispatch:
            return message | {"content": f"error: unknown tool {name!r}"}
        content = await call_mcp(servers, dispatch, name, arguments)
        return message | {"content": content[: self.config.tool_output_max_chars] if isinstance(content, str) else content}

    async def cleanup(self, trace: vf.Trace, runtime: Runtime) -> None:
        """Nothing outlives `launch`."""


class _ToolGate:
    """The library's check of a tool call before it happens."""

    def __init__(self, url: str, secret: str) -> None:
        self._url, self._secret = url, secret

    async def ask(self, call_id: str, name: str, arguments: Any) -> dict[str, Any] | None:
        """None to go on, else the tool message that stands for the refused call."""
        verdict = await _post(self._url, self._secret, {"tool_call_id": call_id, "name": name, "arguments": arguments})
        if verdict["action"] == "stop":
            raise RuntimeError(verdict["reason"])
        return verdict["message"] if verdict["action"] == "deny" else None


async def _ask_model(url: str, secret: str, body: dict, trace_id: str) -> dict[str, Any]:
    try:
        reply = await _post(url, secret, body)
    except asyncio.CancelledError:
        interrupted_calls.add(trace_id)
        raise
    return reply["choices"][0]["message"]


async def _post(url: str, secret: str, body: dict) -> dict[str, Any]:
    async with _session().post(url, headers={"Authorization": f"Bearer {secret}"}, json=body) as reply:
        if reply.status >= 400:
            # The library has recorded the cause; a HarnessError makes it put that cause on the trace.
            text = (await reply.text(errors="replace"))[:_ERROR_CHARS]
            raise vf.HarnessError(f"model call answered {reply.status}: {text}")
        return await reply.json(content_type=None)


@cache
def _session() -> aiohttp.ClientSession:
    """One session a process, unlimited connections. No total time-out: the stages of a rollout have theirs."""
    timeout = aiohttp.ClientTimeout(total=None, connect=_CONNECT_S)
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout)
