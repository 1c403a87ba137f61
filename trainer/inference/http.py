"""What all routes share: body limit, request ids, waiting for an answer while watching for the client's departure, errors, and
the bearer. Knows HTTP; refuses to know what is generated."""

import asyncio
import contextlib
import hmac
import secrets
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from trainer.inference.backend import Backend, Ticket
from trainer.inference.errors import BodyTooLarge, EngineError, Unauthorized
from trainer.inference.sequence import Sequence


async def read_body(request: Request) -> bytes:
    """The body, refused as soon as it is longer than the limit."""
    limit: int = request.app.state.service.limits.body_bytes_max
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise BodyTooLarge(f"the body is longer than {limit} bytes")
        chunks.append(chunk)
    return b"".join(chunks)


def request_id(request: Request) -> str:
    """The caller's X-Request-ID, or one of ours."""
    return request.headers.get("x-request-id", "")[:128] or secrets.token_hex(12)


@contextlib.asynccontextmanager
async def departure_watch(request: Request, engine: Backend, sequence: Sequence) -> AsyncIterator[None]:
    """End the sequence when the client goes away, and when the block is left before its end for any other reason."""

    async def watch() -> None:
        # After the body, the only message that can come is the disconnect.
        await request.receive()
        engine.abort(sequence)

    watcher = asyncio.create_task(watch())
    try:
        yield
    finally:
        watcher.cancel()
        engine.abort(sequence)


async def answer(request: Request, engine: Backend, ticket: Ticket) -> Sequence:
    """The finished sequence."""
    async with departure_watch(request, engine, ticket.sequence):
        return await ticket.finished()


async def engine_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, EngineError)
    headers = {"Retry-After": "1"} if error.status == 503 else None
    return JSONResponse(error.body(), status_code=error.status, headers=headers)


class BearerGate:
    """Demands the pool's token on everything but /health."""

    def __init__(self, app: ASGIApp, token: str):
        self._app = app
        self._wanted = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] != "/health":
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, self._wanted):
                refusal = Unauthorized("the pool's bearer token is missing or wrong")
                await JSONResponse(refusal.body(), status_code=401)(scope, receive, send)
                return
        await self._app(scope, receive, send)
