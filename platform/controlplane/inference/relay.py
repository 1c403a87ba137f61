"""A streamed answer on its way from the engine to the caller.

One task reads the engine and keeps the accounts; the response's iterator only hands on what the task put into a queue. The queue
is not bounded by number: an answer is at most `TOKENS_OUT_MAX` chunks, and a slow reader must not slow the engine down.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx

from controlplane.core.errors import ApiError
from controlplane.core.problems import INFERENCE_PREFIX, problem_of
from controlplane.inference import gateways
from controlplane.inference.errors import EngineAway
from controlplane.inference.exchange import Exchange, spawn
from controlplane.inference.models import RequestStatus
from controlplane.inference.rewriting import public_chunk

DONE = b"data: [DONE]\n\n"


class Relay:
    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._head: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = spawn(self._run())

    async def begun(self) -> None:
        """Returns once the first chunk is there and was made by the right weights. Raises what the engine failed with before."""
        try:
            await asyncio.shield(self._head)
        except asyncio.CancelledError:
            self.abandon()
            raise

    async def events(self) -> AsyncIterator[bytes]:
        """Server-sent events for the response. Left early, because the caller has gone, it aborts the engine's work."""
        try:
            while (event := await self._queue.get()) is not None:
                yield event
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Nobody reads any more. What was streamed up to here is recorded and billed."""
        self._task.cancel()

    async def _run(self) -> None:
        failure: ApiError | None = EngineAway()
        try:
            await self._forward()
            self._exchange.end(RequestStatus.OK)
            failure = None
        except asyncio.CancelledError:
            # The task ends here by request and still has to record: it must not look cancelled to itself.
            self._exchange.end(RequestStatus.ABORTED)
        except ApiError as error:
            self._exchange.end(RequestStatus.FAILED, error.code)
            failure = error
        finally:
            # Recorded before the caller is told how it ended: whoever has read to the end finds it on the bill.
            await self._exchange.close()
            self._tell(failure)

    async def _forward(self) -> None:
        exchange = self._exchange
        async with gateways.chat(exchange.route, exchange.engine_body) as response:
            async for chunk in _chunks(response):
                exchange.take(chunk)
                if not self._head.done():
                    self._head.set_result(None)
                shown = public_chunk(
                    chunk,
                    request_id=exchange.request_id,
                    public_name=exchange.route.public_name,
                    wants_usage=exchange.asked.wants_usage,
                )
                if shown is not None:
                    self._queue.put_nowait(_event(shown))
        if not self._head.done():
            raise EngineAway("the engine's answer was empty")

    def _tell(self, failure: ApiError | None) -> None:
        """Before the first chunk the response can still carry a failure's status; behind it an event has to."""
        if failure is not None and not self._head.done():
            self._head.set_exception(failure)
            self._head.exception()  # Looked at, so that asyncio does not complain where nobody waits any more.
        elif failure is not None:
            problem = problem_of(failure)
            assert problem is not None
            self._queue.put_nowait(_event(problem.body(INFERENCE_PREFIX)))
        self._queue.put_nowait(DONE)
        self._queue.put_nowait(None)


async def _chunks(response: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    """The engine's events. Raises EngineAway for an error among them, and for a stream that ends without saying so."""
    async for line in response.aiter_lines():
        if not line.startswith("data: "):
            continue
        if line == "data: [DONE]":
            return
        chunk = _parsed(line.removeprefix("data: "))
        if "error" in chunk:
            raise EngineAway("the engine failed while it was answering")
        yield chunk
    raise EngineAway("the engine's answer ended early")


def _parsed(text: str) -> dict[str, Any]:
    try:
        chunk = json.loads(text)
    except ValueError as error:
        raise EngineAway from error
    if not isinstance(chunk, dict):
        raise EngineAway
    return chunk


def _event(body: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"
