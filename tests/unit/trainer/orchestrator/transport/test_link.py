"""The lean HTTP client: framing, keep-alive, and what it does with a peer that misbehaves."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest

from trainer.orchestrator.transport.link import Link, LinkError, TooLarge

Answers = Callable[[bytes], bytes]


class Peer:
    """A server in memory: `replies` are raw bytes, one per request; None closes the connection instead."""

    def __init__(self, *replies: bytes | None):
        self.replies = list(replies)
        self.requests: list[bytes] = []
        self.connections = 0
        self.link = Link(self._connect, "peer", {"X-Team": "t"})

    async def _connect(self):
        self.connections += 1
        reader = asyncio.StreamReader(limit=64 << 10)
        return reader, Writer(self, reader)


class Writer:
    def __init__(self, peer: Peer, reader: asyncio.StreamReader):
        self._peer, self._reader, self._closed = peer, reader, False

    def write(self, data: bytes) -> None:
        self._peer.requests.append(data)
        reply = self._peer.replies.pop(0)
        if reply is None:
            self._reader.feed_eof()
        else:
            self._reader.feed_data(reply)

    async def drain(self) -> None:
        await asyncio.sleep(0)

    def close(self) -> None:
        self._closed = True

    def is_closing(self) -> bool:
        return self._closed


def plain(body: bytes, *headers: bytes, status: bytes = b"200 OK") -> bytes:
    lines = [b"HTTP/1.1 " + status, b"Content-Length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"


@contextlib.asynccontextmanager
async def answered(peer: Peer, body: bytes = b"") -> AsyncIterator:
    answer = await peer.link.send("POST", "/path", body)
    try:
        yield answer
    finally:
        answer.close()


async def test_a_request_carries_method_path_headers_and_body():
    peer = Peer(plain(b"{}"))
    async with answered(peer, b"[1]") as answer:
        assert (answer.status, await answer.read(100)) == (200, b"{}")
    head, body = peer.requests[0].split(b"\r\n\r\n")
    assert head.startswith(b"POST /path HTTP/1.1\r\nHost: peer\r\nContent-Length: 3")
    assert b"X-Team: t" in head and body == b"[1]"


@pytest.mark.parametrize("reply", [plain(b"abcde"), CHUNKED])
async def test_both_framings_are_read_to_the_end_and_the_connection_is_reused(reply):
    peer = Peer(reply, reply)
    for _ in range(2):
        async with answered(peer) as answer:
            assert await answer.read(100) == b"abcde"
    assert peer.connections == 1


async def test_a_body_that_was_not_read_costs_the_connection():
    peer = Peer(plain(b"abcde"), plain(b"x"))
    async with answered(peer):
        pass
    async with answered(peer) as answer:
        assert await answer.read(100) == b"x"
    assert peer.connections == 2


async def test_connection_close_is_honoured():
    peer = Peer(plain(b"", b"Connection: close"), plain(b""))
    for _ in range(2):
        async with answered(peer) as answer:
            await answer.read(1)
    assert peer.connections == 2


async def test_a_kept_connection_that_the_peer_closed_is_replaced_once():
    peer = Peer(plain(b""), None, plain(b"again"))
    async with answered(peer) as answer:
        await answer.read(1)
    async with answered(peer) as answer:
        assert await answer.read(100) == b"again"
    assert peer.connections == 2


@pytest.mark.parametrize(
    "reply",
    [
        None,
        b"nonsense\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * (65 << 10) + b"\r\n\r\n",
    ],
)
async def test_a_head_that_is_no_head_is_an_error(reply):
    with pytest.raises(LinkError):
        await Peer(reply).link.send("GET", "/")


@pytest.mark.parametrize("size", [b"zz", b"-1"])
async def test_a_chunk_of_a_strange_size_is_an_error(size):
    peer = Peer(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + size + b"\r\n")
    async with answered(peer) as answer:
        with pytest.raises(LinkError):
            await answer.read(100)


async def test_a_body_beyond_the_limit_is_not_kept():
    async with answered(Peer(plain(b"x" * 101))) as answer:
        with pytest.raises(TooLarge):
            await answer.read(100)
