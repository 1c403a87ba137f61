"""A lean HTTP/1.1 client for the two busy paths: every model call to the pool, every rollout to its runner.

Knows connections, keep-alive and framing. Refuses to know what is sent, redirects, compression and cookies. It exists because a
general client spends several milliseconds of CPU a request once a hundred connections are open; this one spends a tenth of
that. The peer may be hostile: heads and bodies are bounded, and time is the caller's to bound.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

HEAD_BYTES_MAX = 64 << 10
READ_BYTES = 64 << 10
IDLE_MAX = 256
CONNECT_S = 5.0

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Connect = Callable[[], Awaitable[Connection]]


class LinkError(Exception):
    """The peer could not be reached, went away in the middle, or does not speak HTTP."""


class TooLarge(LinkError):
    """The body is longer than the caller allows."""


@dataclass(slots=True)
class Answer:
    """Status and headers (lower-case names) are here; the body comes by `read` or `chunks`. `close` must be called; after the
    whole body was read it keeps the connection for the next request."""

    status: int
    headers: Mapping[str, str]
    _link: "Link"
    _connection: Connection
    _done: bool = False

    async def read(self, bytes_max: int) -> bytes:
        parts, size = [], 0
        async for part in self.chunks():
            size += len(part)
            if size > bytes_max:
                raise TooLarge(f"more than {bytes_max} bytes")
            parts.append(part)
        return b"".join(parts)

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes, in pieces of at most 64 KiB."""
        try:
            if self.headers.get("transfer-encoding", "").lower() == "chunked":
                async for part in self._chunked():
                    yield part
            else:
                async for part in self._sized(_count(self.headers.get("content-length", "0").encode(), base=10)):
                    yield part
        except (OSError, ValueError, EOFError, asyncio.LimitOverrunError) as error:
            raise LinkError(_words(error)) from error
        self._done = True

    def close(self) -> None:
        keep = self._done and self.headers.get("connection", "").lower() != "close"
        self._link.give_back(self._connection, keep=keep)

    async def _sized(self, size: int) -> AsyncIterator[bytes]:
        reader = self._connection[0]
        while size > 0:
            part = await reader.read(min(size, READ_BYTES))
            if not part:
                raise EOFError("the body ended early")
            size -= len(part)
            yield part

    async def _chunked(self) -> AsyncIterator[bytes]:
        reader = self._connection[0]
        while size := _count(await reader.readuntil(b"\n"), base=16):
            async for part in self._sized(size):
                yield part
            await reader.readuntil(b"\n")
        while (await reader.readuntil(b"\n")).strip():
            continue


@dataclass(slots=True)
class Link:
    """Connections to one peer, reused last in, first out. Made by `to_url` or `to_socket`."""

    connect: Connect
    host: str
    headers: Mapping[str, str] = field(default_factory=dict)
    prefix: str = ""
    _idle: list[Connection] = field(default_factory=list)
    _busy: set[asyncio.StreamWriter] = field(default_factory=set)
    _closed: bool = False

    @classmethod
    def to_url(cls, url: str, headers: Mapping[str, str] | None = None) -> "Link":
        """`http://host:port` or `https://…`."""
        parts = urlsplit(url)
        secure = ssl.create_default_context() if parts.scheme == "https" else None
        port = parts.port or (443 if secure else 80)

        async def connect() -> Connection:
            return await asyncio.open_connection(parts.hostname, port, ssl=secure, limit=HEAD_BYTES_MAX)

        return cls(connect, parts.netloc, headers or {}, parts.path.rstrip("/"))

    @classmethod
    def to_socket(cls, path: Path) -> "Link":
        async def connect() -> Connection:
            return await asyncio.open_unix_connection(str(path), limit=HEAD_BYTES_MAX)

        return cls(connect, "localhost")

    async def send(self, method: str, path: str, body: bytes = b"") -> Answer:
        """The head of the answer. A kept connection that the peer has closed meanwhile is replaced once. Raises LinkError."""
        while self._idle:
            connection = self._idle.pop()
            if connection[0].at_eof() or connection[1].is_closing():
                connection[1].close()
                continue
            try:
                return await self._exchange(connection, method, path, body)
            except LinkError:
                break
        return await self._exchange(await self._connected(), method, path, body)

    def give_back(self, connection: Connection, *, keep: bool) -> None:
        self._busy.discard(connection[1])
        if keep and not self._closed and len(self._idle) < IDLE_MAX:
            self._idle.append(connection)
        else:
            connection[1].close()

    def close(self) -> None:
        """Close every connection; whoever waits on one gets a LinkError."""
        self._closed = True
        for writer in [*self._busy, *(writer for _, writer in self._idle)]:
            writer.close()
        self._idle.clear()

    async def _connected(self) -> Connection:
        try:
            async with asyncio.timeout(CONNECT_S):
                return await self.connect()
        except (OSError, TimeoutError) as error:
            raise LinkError(_words(error)) from error

    async def _exchange(self, connection: Connection, method: str, path: str, body: bytes) -> Answer:
        reader, writer = connection
        self._busy.add(writer)
        fields = {"Host": self.host, "Content-Length": str(len(body)), "Content-Type": "application/json", **self.headers}
        lines = [f"{method} {self.prefix}{path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
        try:
            writer.write("\r\n".join(lines).encode("latin-1") + body)
            await writer.drain()
            status, headers = _parsed_head(await reader.readuntil(b"\r\n\r\n"))
        except BaseException as error:
            self.give_back(connection, keep=False)
            if isinstance(error, OSError | ValueError | EOFError | asyncio.LimitOverrunError):
                raise LinkError(_words(error)) from error
            raise
        return Answer(status, headers, self, connection)


def _parsed_head(head: bytes) -> tuple[int, dict[str, str]]:
    first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
    version, status, *_ = first.split(" ", 2)
    if not version.startswith("HTTP/1."):
        raise ValueError("the peer does not speak HTTP/1.1")
    pairs = (line.split(":", 1) for line in lines)
    return int(status), {name.strip().lower(): value.strip() for name, value in pairs}


def _count(text: bytes, *, base: int) -> int:
    """A length as HTTP spells it: digits alone, and nothing that int() would also take."""
    digits = text.split(b";")[0].strip()
    if not digits.isalnum():
        raise ValueError(f"a length of {digits[:20]!r}")
    return int(digits, base)


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")
