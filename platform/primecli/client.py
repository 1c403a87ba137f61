"""HTTP to the control plane: one request function, one translation of error replies, one reader of event streams.

Knows the error shape `{detail, code, hint}` and which exit code a status means. Refuses to know any endpoint.
"""

import json
import platform
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any
from uuid import uuid4

import httpx

from primecli.config import Config
from primecli.output import CliError, ExitCode

TIMEOUT = httpx.Timeout(30.0, connect=10.0)
STREAM_TIMEOUT = httpx.Timeout(60.0, connect=10.0)
"""The server sends a comment every few seconds; a minute of silence means that it is gone."""
END = "end"
"""The kind of event after which nothing will ever follow."""
RECONNECTS_MAX = 10
RECONNECT_PAUSE_S = 1.0
POST_TRIES = 3

EXIT_CODES = {401: ExitCode.AUTH, 402: ExitCode.BILLING, 403: ExitCode.AUTH, 404: ExitCode.NOT_FOUND}
DEFAULT_HINTS = {
    401: "run `prime login`, or set PRIME_API_KEY",
    402: "add funds with `prime wallet top-up AMOUNT_USD`",
}


class ApiFailure(CliError):
    """A reply that is not a success."""

    def __init__(self, status: int, message: str, **rest: Any) -> None:
        super().__init__(message, EXIT_CODES.get(status, ExitCode.ERROR), **rest)
        self.status = status


class Unreachable(CliError):
    """No reply at all, or one that broke off."""


@dataclass(frozen=True)
class ServerEvent:
    """One event of a stream; `id` is the cursor to go on from."""

    id: str
    kind: str
    data: Any


class Client:
    """Requests of one user for one team. Paths are relative to `/api/v1`."""

    def __init__(self, config: Config, transport: httpx.BaseTransport | None = None, *, token: str | None = None) -> None:
        self.config, self._transport = config, transport
        token = token or config.api_key
        headers = {"User-Agent": f"rootstock-cli/{version('rootstock-lab')} python/{platform.python_version()}"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if config.team_id:
            headers["X-Prime-Team-ID"] = config.team_id
        self._http = httpx.Client(headers=headers, timeout=TIMEOUT, follow_redirects=True, transport=transport)
        self._bare = httpx.Client(timeout=httpx.Timeout(300.0, connect=10.0), follow_redirects=True, transport=transport)

    def acting_with(self, token: str) -> "Client":
        """The same server with another credential, for the one exchange that has its own."""
        return Client(self.config, self._transport, token=token)

    def pointed_at(self, config: Config) -> "Client":
        return Client(config, self._transport)

    def get(self, path: str, **params: Any) -> dict[str, Any]:
        return self.request("GET", path, params=params)

    def post(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return self.request("POST", path, body=body)

    def request(
        self, method: str, path: str, *, params: Mapping[str, Any] | None = None, body: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """One JSON request. Raises `ApiFailure` for every reply that is not a success.

        A POST carries a key of its own, so that sending it again after a lost reply starts nothing twice.
        """
        given = {key: value for key, value in (params or {}).items() if value is not None}
        content = None if body is None else json.dumps(body, default=str, allow_nan=False)
        headers = {"Content-Type": "application/json"} if content is not None else {}
        if method == "POST":
            headers["Idempotency-Key"] = uuid4().hex
        tries = POST_TRIES if method == "POST" else 1
        while True:
            try:
                with _reachable(self.config):
                    reply = self._http.request(method, self.url(path), params=given, content=content, headers=headers)
                break
            except Unreachable:
                tries -= 1
                if not tries:
                    raise
            time.sleep(RECONNECT_PAUSE_S)
        raise_for_failure(reply)
        return decoded(reply)

    def health(self) -> tuple[dict[str, bool], str]:
        """Which parts of the server answer, and its time as the `Date` header spells it. Needs no key."""
        with _reachable(self.config):
            reply = self._bare.get(f"{self.config.base_url}/healthz", timeout=TIMEOUT)
        try:
            parts = reply.json()["parts"]
        except (ValueError, KeyError, TypeError) as error:
            raise Unreachable(f"{self.config.base_url} is no Rootstock", hint="PRIME_API_BASE_URL says where yours is") from error
        return parts, reply.headers.get("Date", "")

    def url(self, path: str) -> str:
        return path if path.startswith(("http://", "https://")) else f"{self.config.base_url}/api/v1{path}"

    def upload(self, url: str, chunks: Iterator[bytes], size_bytes: int) -> None:
        """PUT to a signed address, which takes no credentials."""
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size_bytes)}
        with _reachable(self.config):
            raise_for_failure(self._bare.put(url, content=chunks, headers=headers))

    def download(self, url: str) -> Iterator[bytes]:
        """The bytes behind an address of ours; the key goes along only to our own origin."""
        sender = self._http if url.startswith(f"{self.config.base_url}/") else self._bare
        with _reachable(self.config), sender.stream("GET", url) as reply:
            if reply.is_error:
                reply.read()
            raise_for_failure(reply)
            yield from reply.iter_bytes()

    def stream(self, method: str, url: str, *, body: Mapping[str, Any] | None = None) -> Iterator[ServerEvent]:
        """One event stream, from its start to its end, without reconnecting."""
        return self._events(method, url, body=body, last_id="")

    def follow(self, path: str, last_id: str = "0") -> Generator[ServerEvent, None, None]:
        """An event log from a cursor on, across lost connections, without gap or repeat, until the server ends it."""
        failures = 0
        while True:
            try:
                for event in self._events("GET", self.url(path), last_id=last_id):
                    failures = 0
                    last_id = event.id or last_id
                    yield event
                    if event.kind == END:
                        return
            except Unreachable:
                failures += 1
                if failures > RECONNECTS_MAX:
                    raise
            time.sleep(RECONNECT_PAUSE_S)

    def _events(self, method: str, url: str, *, last_id: str, body: Mapping[str, Any] | None = None) -> Iterator[ServerEvent]:
        headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": last_id} if last_id else {})
        with _reachable(self.config), self._http.stream(method, url, headers=headers, json=body, timeout=STREAM_TIMEOUT) as reply:
            if reply.is_error:
                reply.read()
            raise_for_failure(reply)
            yield from parse_events(reply.iter_lines())


@contextmanager
def _reachable(config: Config) -> Iterator[None]:
    """A broken connection, told with the address that was tried."""
    try:
        yield
    except (httpx.TransportError, httpx.InvalidURL) as error:
        reason = str(error) or type(error).__name__
        hint = f"is Rootstock up at {config.base_url}? PRIME_API_BASE_URL or `prime login --base-url` says where it is"
        raise Unreachable(f"cannot reach the server: {reason}", code="unreachable", hint=hint) from error


def decoded(reply: httpx.Response) -> dict[str, Any]:
    """The JSON object of a success; an empty reply is an empty object."""
    if not reply.content:
        return {}
    try:
        found = reply.json()
    except ValueError as error:
        raise ApiFailure(reply.status_code, f"the server answered {reply.url.path} with something that is not JSON") from error
    if not isinstance(found, dict):
        raise ApiFailure(reply.status_code, f"the server answered {reply.url.path} with JSON that is no object")
    return found


def raise_for_failure(reply: httpx.Response) -> None:
    """`{detail, code, hint}`, the per-field list of a 422, OpenAI's `{error: {message}}`, or plain text, as one exception."""
    if reply.is_success:
        return
    message, code, hint, fields = _explained(reply)
    hint = hint or DEFAULT_HINTS.get(reply.status_code, "")
    raise ApiFailure(reply.status_code, message, code=code, hint=hint, fields=fields)


def _explained(reply: httpx.Response) -> tuple[str, str, str, list[tuple[str, str]]]:
    try:
        body = reply.json()
    except ValueError:
        body = None
    fallback = f"HTTP {reply.status_code} {reply.reason_phrase}"
    if not isinstance(body, dict):
        return reply.text.strip()[:500] or fallback, "http_error", "", []
    if isinstance(body.get("error"), dict):
        inner = body["error"]
        return str(inner.get("message") or fallback), str(inner.get("code") or "error"), "", []
    detail = body.get("detail")
    code, hint = str(body.get("code") or "error"), str(body.get("hint") or "")
    if isinstance(detail, list):
        return "the request was not accepted", code, hint, [_field(item) for item in detail if isinstance(item, dict)]
    return str(detail or fallback), code, hint, []


def _field(item: Mapping[str, Any]) -> tuple[str, str]:
    """`["body", "environments", 0, "id"]` → `environments.0.id`."""
    where = [str(part) for part in item.get("loc", []) if part not in ("body", "query", "path")]
    return ".".join(where) or "request", str(item.get("msg", "not accepted"))


def parse_events(lines: Iterable[str]) -> Iterator[ServerEvent]:
    """Server-sent events. `data` that is no JSON stays text (OpenAI's `[DONE]`); comments are heartbeats."""
    event_id, kind, data = "", "message", list[str]()
    for line in lines:
        if not line:
            if data:
                yield ServerEvent(event_id, kind, _json_or_text("\n".join(data)))
            kind, data = "message", []
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "id":
            event_id = value
        elif name == "event":
            kind = value
        elif name == "data":
            data.append(value)


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text
