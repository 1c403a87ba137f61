"""Calling a pool's machines (trainer, engines): repeat while they are away, report once, give up with a cause.

Knows HTTP and patience. Refuses to know what is asked: only idempotent calls come here.
"""

from collections.abc import Callable
from dataclasses import dataclass

import httpx

from trainer.contracts.base import Wire
from trainer.contracts.events import FailureCode
from trainer.orchestrator.attempt.endings import failed
from trainer.orchestrator.transport.backoff import Backoff

AWAY_STATUSES = frozenset({502, 503, 504})
GIVE_UP_S = 300.0
CALL_TIMEOUT_S = 600.0
CALL_TIMEOUT = httpx.Timeout(CALL_TIMEOUT_S, connect=5.0)

OnTrouble = Callable[[str, str], None]
"""(code, message): told when a service goes away and when it is back."""


def pool_headers(token: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"} if token else {}


def pool_client(token: str | None) -> httpx.AsyncClient:
    """The client for trainer and engines; `token` is the pool's bearer."""
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=256)
    return httpx.AsyncClient(headers=pool_headers(token), timeout=CALL_TIMEOUT, limits=limits, trust_env=False)


@dataclass(slots=True)
class Service:
    """One machine of the pool, by its address. `name` is what people read: 'the trainer'."""

    http: httpx.AsyncClient
    url: str
    name: str
    unreachable: FailureCode
    on_trouble: OnTrouble
    give_up_s: float = GIVE_UP_S

    async def call(self, method: str, path: str, body: Wire | None = None) -> httpx.Response:
        """The answer, whatever its status, except that of a machine that is away. Raises AttemptOver after `give_up_s`."""
        content = None if body is None else body.model_dump_json().encode()
        backoff = Backoff(give_up_s=self.give_up_s)
        told = False
        while True:
            try:
                response = await self.http.request(
                    method, self.url + path, content=content, headers={"Content-Type": "application/json"}
                )
                if not _is_away(response):
                    break
                problem = f"answered {response.status_code}"
            except httpx.TransportError as error:
                problem = f"{type(error).__name__}: {error}".rstrip(": ")
            if not told:
                self.on_trouble(self.unreachable.value, f"{self.name} is unreachable ({problem}); trying again")
                told = True
            if not await backoff.wait():
                raise failed(self.unreachable, f"{self.name} was unreachable for {self.give_up_s:.0f} s; last: {problem}")
        if told:
            self.on_trouble(f"{self.unreachable.value}_over", f"{self.name} is back after {backoff.waited_s:.1f} s")
        return response


def _is_away(response: httpx.Response) -> bool:
    return response.status_code in AWAY_STATUSES and error_code(response) != "no_free_slot"


def error_code(response: httpx.Response) -> str:
    """The machine-readable code of our own error shape, or an empty text."""
    try:
        body = response.json()
    except ValueError:
        return ""
    return str(body.get("code", "")) if isinstance(body, dict) else ""
