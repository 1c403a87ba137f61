"""An engine behind `model.sock`: it speaks the two routes that a runner calls and answers what a test says.

Knows the byte vocabulary of `tiny` (id = byte, end of turn 258). It keeps every request for a test to look at.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from trainer.contracts.rollouts import SEAT_HEADER

END_OF_TURN, CALL_OPENS, CALL_CLOSES = 258, 259, 260


def encode(text: str) -> list[int]:
    """Ids of a closed reply; tool-call tags are single tokens."""
    ids: list[int] = []
    for index, part in enumerate(text.replace("</tool_call>", "<tool_call>").split("<tool_call>")):
        ids += [[CALL_OPENS], [CALL_CLOSES]][(index + 1) % 2] if index else []
        ids += part.encode()
    return [*ids, END_OF_TURN]


@dataclass
class FakeEngine:
    """`reply` maps a prompt's text to the reply's text, or to its token ids as they are; `spoken` keeps the (prompt, reply) ids.
    `status` other than 200 makes every call fail; `hold` makes it wait."""

    reply: Callable[[str], str | list[int]] = lambda prompt: "sum 2"
    status: int = 200
    logprob: float = -0.5
    hold: asyncio.Event = field(default_factory=asyncio.Event)
    requests: list[dict[str, Any]] = field(default_factory=list)
    sessions: list[str] = field(default_factory=list)
    seats: list[str] = field(default_factory=list)
    """Per request the agent that a model of its own plays, empty for the policy."""
    spoken: list[tuple[list[int], list[int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.hold.set()

    def start_over(self, reply: Callable[[str], str | list[int]]) -> None:
        """For the next test of a shared runner: another voice and no past."""
        self.reply = reply
        for past in (self.requests, self.sessions, self.seats, self.spoken):
            past.clear()
        self.hold.set()

    def application(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/models", self.models),
                Route("/inference/v1/generate", self.generate, methods=["POST"]),
                Route("/v1/chat/completions", self.chat, methods=["POST"]),
            ]
        )

    async def models(self, request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [{"id": "tiny", "object": "model", "max_model_len": 2048}]})

    async def generate(self, request: Request) -> Response:
        body = await self._take(request)
        if self.status != 200:
            return JSONResponse({"error": {"message": "out of order", "type": "server_error"}}, self.status)
        prompt = bytes(token for token in body["token_ids"] if token < 256).decode(errors="replace")
        limit = body["sampling_params"]["max_tokens"]
        said = self.reply(prompt)
        ids = (encode(said) if isinstance(said, str) else said)[:limit]
        self.spoken.append((body["token_ids"], ids))
        choice = {
            "index": 0,
            "token_ids": ids,
            "finish_reason": "stop" if ids[-1] == END_OF_TURN else "length",
            "logprobs": {"content": [{"token": f"token_id:{token}", "logprob": self.logprob} for token in ids]},
        }
        return JSONResponse({"id": "r", "request_id": "r", "model": body["model"], "choices": [choice]})

    async def chat(self, request: Request) -> Response:
        body = await self._take(request)
        if self.status != 200:
            return JSONResponse({"error": {"message": "out of order", "type": "server_error"}}, self.status)
        message = {"role": "assistant", "content": self.reply(body["messages"][-1]["content"])}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        reply = {
            "id": "c",
            "object": "chat.completion",
            "created": 0,
            "model": body["model"],
            "choices": [choice],
            "usage": usage,
        }
        return JSONResponse(reply)

    async def _take(self, request: Request) -> dict[str, Any]:
        body = await request.json()
        self.requests.append(body)
        self.sessions.append(request.headers.get("X-Session-ID", ""))
        self.seats.append(request.headers.get(SEAT_HEADER, ""))
        await self.hold.wait()
        return body


@contextlib.asynccontextmanager
async def serve_on(engine: FakeEngine, path: Path) -> AsyncIterator[None]:
    """`engine` listens on the Unix socket `path` until the block is left."""
    server = uvicorn.Server(uvicorn.Config(engine.application(), uds=str(path), log_level="critical", access_log=False))
    task = asyncio.create_task(server._serve())
    try:
        while not server.started:
            assert not task.done(), "the fake engine did not start"
            await asyncio.sleep(0.005)
        yield
    finally:
        engine.hold.set()
        server.should_exit = server.force_exit = True
        await asyncio.wait({task}, timeout=2)
