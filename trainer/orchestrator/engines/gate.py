"""The way from a rollout to the pool: repeats while an engine is away, loads versions again that a restarted engine forgot.

Knows `POOL_URL`, engine statuses and patience. Refuses to know sessions and what the sandbox asked. What an engine cannot
answer within the patience is an infrastructure failure: the rollout is masked and free.
"""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from trainer.contracts.events import FailureCode
from trainer.orchestrator.attempt.endings import AttemptOver
from trainer.orchestrator.attempt.services import OnTrouble
from trainer.orchestrator.engines.client import Engines
from trainer.orchestrator.engines.policies import Policy
from trainer.orchestrator.transport.backoff import Backoff
from trainer.orchestrator.transport.link import Answer, Link, LinkError

PATIENCE_S = 60.0
ERROR_BYTES_MAX = 64 << 10
REPLY_BYTES_MAX = 64 << 20
T = TypeVar("T")


class EngineAway(Exception):
    """No answer within the patience; the text says what was tried last."""


class Trouble(Exception):
    """One try failed; the next may do better."""


@dataclass(frozen=True, slots=True)
class EngineReply:
    status: int
    body: bytes


@dataclass(slots=True)
class EngineGate:
    """`away_since_s` is when the engines last stopped answering, None while they answer."""

    link: Link
    engines: Engines | None
    on_trouble: OnTrouble
    patience_s: float = PATIENCE_S
    away_since_s: float | None = None
    back_at_s: float | None = None

    def was_away(self, *, since_s: float) -> bool:
        """Whether the engines were away at some moment after `since_s`."""
        return self.away_since_s is not None or (self.back_at_s is not None and self.back_at_s > since_s)

    async def ask(self, path: str, content: bytes, policy: Policy) -> EngineReply:
        """The engine's whole answer to one call: a success or a refusal of the request (4xx). Raises EngineAway."""

        async def call() -> EngineReply:
            answer = await self.opened(path, content, policy)
            try:
                return EngineReply(answer.status, await answer.read(REPLY_BYTES_MAX))
            except LinkError as error:
                raise Trouble(str(error)) from error
            finally:
                answer.close()

        return await self._persist(call)

    async def open(self, path: str, content: bytes, policy: Policy) -> Answer:
        """As `ask`, with the body still to be read; the caller closes it."""
        return await self._persist(lambda: self.opened(path, content, policy))

    async def _persist(self, call: Callable[[], Awaitable[T]]) -> T:
        backoff = Backoff(give_up_s=self.patience_s)
        while True:
            try:
                answered = await call()
            except Trouble as trouble:
                self._away(str(trouble))
                if not await backoff.wait():
                    raise EngineAway(str(trouble)) from trouble
                continue
            self._answered()
            return answered

    async def opened(self, path: str, content: bytes, policy: Policy) -> Answer:
        """One try. Raises Trouble for what may be better the next time."""
        try:
            answer = await self.link.send("POST", path, content)
        except LinkError as error:
            raise Trouble(str(error)) from error
        forgotten = answer.status == 404 and policy.path is not None and self.engines is not None
        if not forgotten and answer.status < 500 and answer.status != 429:
            return answer
        try:
            text = (await answer.read(ERROR_BYTES_MAX)).decode("utf-8", "replace")
        except LinkError as error:
            text = str(error)
        finally:
            answer.close()
        if forgotten and self.engines is not None:
            await self._reload(self.engines, policy)
        raise Trouble(f"the engine answered {answer.status}: {text[:300]}")

    async def _reload(self, engines: Engines, policy: Policy) -> None:
        self._away(f"an engine has forgotten {policy.engine_name}; loading it again")
        try:
            await engines.reload(policy)
        except AttemptOver as error:
            raise Trouble(error.message) from error

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
