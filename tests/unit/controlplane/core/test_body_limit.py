"""Bodies above their limit never reach the application."""

from typing import Any

import pytest

from controlplane.core.body_limit import DEFAULT_MAX_BYTES, INTERNAL_MAX_BYTES, UPLOAD_MAX_BYTES, BodyLimit, limit_bytes

CHUNK = b"x" * 2**20


async def run(headers: list[tuple[bytes, bytes]], chunks: int) -> tuple[int, list[str], int | None]:
    """(bytes the application saw, kinds of the messages it saw, status sent)"""
    seen_bytes, kinds, sent = 0, [], []
    left = chunks

    async def application(scope: Any, receive: Any, send: Any) -> None:
        nonlocal seen_bytes
        while True:
            message = await receive()
            kinds.append(message["type"])
            seen_bytes += len(message.get("body", b""))
            if message["type"] == "http.disconnect" or not message.get("more_body"):
                return

    async def receive() -> dict[str, Any]:
        nonlocal left
        left -= 1
        return {"type": "http.request", "body": CHUNK, "more_body": left > 0}

    async def send(message: Any) -> None:
        sent.append(message)

    await BodyLimit(application)({"type": "http", "path": "/api/v1/keys", "headers": headers}, receive, send)
    return seen_bytes, kinds, sent[0]["status"] if sent else None


async def test_a_small_body_passes():
    assert await run([], 2) == (2 * len(CHUNK), ["http.request", "http.request"], None)


async def test_a_declared_large_body_is_refused_unread():
    assert await run([(b"Content-Length", str(DEFAULT_MAX_BYTES + 1).encode())], 1) == (0, [], 413)


async def test_an_undeclared_large_body_ends_as_if_the_client_had_gone():
    seen_bytes, kinds, _ = await run([], 1000)
    assert seen_bytes <= DEFAULT_MAX_BYTES and kinds[-1] == "http.disconnect"


@pytest.mark.parametrize(
    ("path", "limit"),
    [("/objects/a", UPLOAD_MAX_BYTES), ("/internal/v1/rollouts", INTERNAL_MAX_BYTES), ("/api/v1/keys", DEFAULT_MAX_BYTES)],
)
def test_limits_by_address(path: str, limit: int):
    assert limit_bytes(path) == limit
