"""Refuses request bodies that are too large while they arrive, before anything buffers them.

Knows one limit per kind of address. Django's own limits act only after the whole body lies in a temporary file.
"""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from controlplane.core.problems import Problem
from controlplane.core.requests import HEADER, request_id

MIB = 2**20
UPLOAD_MAX_BYTES = 512 * MIB
INTERNAL_MAX_BYTES = 256 * MIB
DEFAULT_MAX_BYTES = 16 * MIB

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


def limit_bytes(path: str) -> int:
    if path.startswith("/objects/"):
        return UPLOAD_MAX_BYTES
    return INTERNAL_MAX_BYTES if path.startswith("/internal/") else DEFAULT_MAX_BYTES


class BodyLimit:
    """ASGI middleware. A declared length over the limit is answered with 413 at once; an undeclared one ends the request."""

    def __init__(self, application: Application) -> None:
        self.application = application

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.application(scope, receive, send)
            return
        limit = limit_bytes(scope["path"])
        if _declared_length(scope) > limit:
            await _refuse(send, scope["path"], limit)
            return
        await self.application(scope, _counted(receive, limit), send)


def _declared_length(scope: MutableMapping[str, Any]) -> int:
    value = next((value for name, value in scope["headers"] if name.lower() == b"content-length"), b"0")
    return int(value) if value.isdigit() else 0


def _counted(receive: Receive, limit: int) -> Receive:
    """Passes the body on until it exceeds the limit, then acts as if the client had gone: Django drops the request."""
    seen = 0

    async def receive_counted() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        return {"type": "http.disconnect"} if seen > limit else message

    return receive_counted


async def _refuse(send: Send, path: str, limit: int) -> None:
    with request_id() as chosen:
        body = Problem(413, "too_large", f"The body is larger than {limit} bytes.").body(path)
    named = (HEADER.lower().encode(), chosen.encode())
    headers = [(b"content-type", b"application/json"), (b"connection", b"close"), named]
    await send({"type": "http.response.start", "status": 413, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps(body).encode()})
