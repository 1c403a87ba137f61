"""A forward proxy between the public clients and the stack: it writes down what they ask, and lets them reach nothing else.

The clients are told of it by the variables that every HTTP library reads, so that they stay as they were published. Knows
requests and statuses. Refuses to know what they mean.
"""

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import urlsplit

ANSWER_DEADLINE_S = 120.0
CHUNK_BYTES = 64 * 1024
HOP_HEADERS = frozenset(
    {"connection", "proxy-connection", "keep-alive", "transfer-encoding", "te", "upgrade", "proxy-authorization"}
)


class Exchange(NamedTuple):
    """`address` is path and query; `agent` is what the client calls itself."""

    method: str
    address: str
    status: int
    agent: str


@dataclass
class Witness:
    """`refused` are the places elsewhere that a client wanted to reach."""

    upstream: str
    url: str = ""
    exchanges: list[Exchange] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


@contextmanager
def witnessed(upstream: str) -> Iterator[Witness]:
    """A proxy at `url` while the block runs; `upstream` is the only host:port behind it."""
    witness = Witness(upstream)
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"witness": witness}))
    server.daemon_threads = True
    witness.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield witness
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    """One request on one connection: whatever the answer's framing was, its end is the connection's."""

    protocol_version = "HTTP/1.1"
    witness: Witness

    def do_CONNECT(self) -> None:
        self._refuse(self.path)

    def log_message(self, format: str, *args: object) -> None:
        """What was asked is in the witness's list."""

    def _forward(self) -> None:
        parts = urlsplit(self.path)
        if parts.netloc != self.witness.upstream:
            return self._refuse(parts.netloc or self.path)
        address = parts.path + (f"?{parts.query}" if parts.query else "")
        kept = {name: value for name, value in self.headers.items() if name.lower() not in HOP_HEADERS}
        upstream = http.client.HTTPConnection(parts.netloc, timeout=ANSWER_DEADLINE_S)
        try:
            upstream.request(self.command, address, body=self._body(), headers=kept | {"Connection": "close"})
            answer = upstream.getresponse()
            agent = self.headers.get("User-Agent", "")
            self.witness.exchanges.append(Exchange(self.command, address, answer.status, agent))
            self._pass_on(answer)
        finally:
            upstream.close()
        return None

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _forward

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            return b"".join(self._chunks())
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline().split(b";")[0], 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def _pass_on(self, answer: http.client.HTTPResponse) -> None:
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            if name.lower() not in HOP_HEADERS:
                self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        while chunk := answer.read1(CHUNK_BYTES):
            self.wfile.write(chunk)
            self.wfile.flush()

    def _refuse(self, place: str) -> None:
        self.witness.refused.append(place)
        self.close_connection = True
        self.send_error(403, f"{place} is not the stack")
