"""A server in memory for the command: routes to replies, and what was asked of them. Knows no rule of the real one."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
from typer.testing import CliRunner, Result

from primecli.app import app

Reply = httpx.Response | Callable[[httpx.Request], httpx.Response] | dict[str, Any]


@dataclass
class StubServer:
    """`routes[("GET", "/api/v1/keys")] = {…}`; a list of replies is given out one after the other, the last one for good."""

    home: Any
    routes: dict[tuple[str, str], Any] = field(default_factory=dict)
    requests: list[httpx.Request] = field(default_factory=list)

    def handle(self, request: httpx.Request) -> httpx.Response:
        request.read()
        self.requests.append(request)
        reply = self.routes.get((request.method, request.url.path))
        if isinstance(reply, list):
            reply = reply.pop(0) if len(reply) > 1 else reply[0]
        if reply is None:
            return problem(404, "There is nothing at this address.", "not_found")
        if callable(reply) and not isinstance(reply, httpx.Response):
            reply = reply(request)
        return reply if isinstance(reply, httpx.Response) else httpx.Response(200, json=reply)

    def run(self, *arguments: str, **environ: str) -> Result:
        variables = {"HOME": str(self.home), "PRIME_API_KEY": "rsk_test", "PRIME_API_BASE_URL": "", "PRIME_TEAM_ID": ""}
        return CliRunner().invoke(app, list(arguments), env=variables | environ, obj=httpx.MockTransport(self.handle))

    def body(self, position: int = -1) -> Any:
        return json.loads(self.requests[position].content)


def problem(status: int, detail: Any, code: str = "error", hint: str = "") -> httpx.Response:
    return httpx.Response(status, json={"detail": detail, "code": code, "hint": hint, "request_id": "r"})


def events(*frames: tuple[str, dict[str, Any] | str]) -> httpx.Response:
    """A stream of (id, data); an empty id ends it."""
    text = "".join(f"id: {key}\ndata: {json.dumps(data)}\n\n" if key else "event: end\ndata: {}\n\n" for key, data in frames)
    return httpx.Response(200, content=text.encode(), headers={"Content-Type": "text/event-stream"})
