"""The way from a rollout to the pool: repeats while an engine is away, loads versions again that a restarted engine forgot.

Knows `POOL_URL`, engine statuses and patience. Refuses to know sessions and what the sandbox asked. What an engine cannot
answer within the patience is an infrastructure failure: the rollout is masked and free.
"""

import time
from dataclasses import dataclass

import httpx

from trainer.contracts.events import FailureCode
from trainer.orchestrator.backoff import Backoff
from trainer.orchestrator.endings import AttemptOver
from trainer.orchestrator.engine_client import Engines
from trainer.orchestrator.policies import Policy
from trainer.orchestrator.services import OnTrouble

PATIENCE_S = 60.0


class EngineAway(Exception):
    """No answer within the patience; the text says what was tried last."""


@dataclass(slots=True)
class EngineGate:
    """`away_since_s` is when the engines last stopped answering, None while they answer."""

    http: httpx.AsyncClient
    pool_url: str
    engines: Engines | None
    on_trouble: OnTrouble
    patience_s: float = PATIENCE_S
    away_since_s: float | None = None
    back_at_s: float | None = None

    def was_away(self, *, since_s: float) -> bool:
        """Whether the engines were away at some moment after `since_s`."""
        return self.away_since_s is not None or (self.back_at_s is not None and self.back_at_s > since_s)

    async def ask(self, path: str, content: bytes, policy: Policy, *, stream: bool = False) -> httpx.Response:
        """The engine's answer to one call: a success or a refusal of the request (4xx). Raises EngineAway."""
        backoff = Backoff(give_up_s=self.patience_s)
        while True:
            problem, response = await self._try(path, content, stream=stream)
            if response is not None and response.status_code == 404 and policy.path is not None and self.engines is not None:
                await response.aread()
                self._away("an engine has forgotten the adapter; loading it again")
                problem = await self._reload(policy)
            elif response is not None:
                self._answered()
                return response
            else:
                self._away(problem)
            if not await backoff.wait():
                raise EngineAway(problem or f"the engine does not serve {policy.engine_name}")

    async def _reload(self, policy: Policy) -> str:
        """Empty once the version is back, else why not."""
        assert self.engines is not None
        try:
            await self.engines.reload(policy)
        except AttemptOver as error:
            return error.message
        return ""

    async def _try(self, path: str, content: bytes, *, stream: bool) -> tuple[str, httpx.Response | None]:
        request = self.http.build_request(
            "POST", self.pool_url + path, content=content, headers={"Content-Type": "application/json"}
        )
        try:
            response = await self.http.send(request, stream=stream)
        except httpx.TransportError as error:
            return f"{type(error).__name__}: {error}".rstrip(": "), None
        if response.status_code < 500 and response.status_code != 429:
            return "", response
        await response.aread()
        return f"the engine answered {response.status_code}: {response.text[:300]}", None

    def _away(self, problem: str) -> None:
        if self.away_since_s is None:
            self.away_since_s = time.monotonic()
            self.on_trouble(FailureCode.INFERENCE_UNREACHABLE.value, f"model calls do not get through: {problem}")

    def _answered(self) -> None:
        if self.away_since_s is not None:
            self.back_at_s = time.monotonic()
            away_s = self.back_at_s - self.away_since_s
            self.away_since_s = None
            self.on_trouble("inference_unreachable_over", f"model calls get through again after {away_s:.1f} s")
