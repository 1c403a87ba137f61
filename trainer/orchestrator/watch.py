"""What looks after an attempt while it works: meters its sandboxes, notices what has been stuck for too long, and has it named.

Knows limits on silence, one for each component that a run can wait for, and names the one that kept it waiting. Refuses to know
what the attempt does: it is told whose turn it is and when something last finished. Each limit is longer than every deadline
below it, so that this ends only what has no end of its own.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from trainer.contracts.events import Component, FailureCode
from trainer.orchestrator.attempt.endings import AttemptOver, failed
from trainer.orchestrator.attempt.services import CALL_TIMEOUT_S, GIVE_UP_S
from trainer.orchestrator.attempt.silence import SilenceNotice
from trainer.orchestrator.engines.gate import EngineGate
from trainer.orchestrator.evals.playing import INFRASTRUCTURE_TRIES
from trainer.orchestrator.workplace import Workplace

WATCH_S = 5.0
MARGIN_S = 45.0
"""Beyond the moment at which the last deadline should have ended the wait; with `WATCH_S` still less than a minute."""
SANDBOX_S = 900.0
"""Install a release, start its runner, load its environment: each has its own deadline."""
QUEUE_S = 900.0
ROLLOUTS = frozenset({Component.ENVIRONMENT, Component.EVAL})
"""Turns in which it is rollouts that are waited for, and these in turn wait for somebody."""


def silence_limits_s(*, rollout_s: float, eval_rollout_s: float) -> dict[Component, float]:
    """For how long nothing may finish while it is a component's turn, given the longest rollout's deadline."""
    called_s = CALL_TIMEOUT_S + GIVE_UP_S
    return {
        Component.ENVIRONMENT: rollout_s + MARGIN_S,
        Component.EVAL: INFRASTRUCTURE_TRIES * eval_rollout_s + MARGIN_S,
        Component.TRAINER: called_s + MARGIN_S,
        Component.ENGINE: called_s + MARGIN_S,
        Component.SANDBOX: SANDBOX_S + MARGIN_S,
        Component.QUEUE: QUEUE_S,
        Component.ORCHESTRATOR: called_s + MARGIN_S,
        Component.API: called_s + MARGIN_S,
    }


@dataclass(frozen=True, slots=True)
class Watch:
    """`progress_s()` is on the monotonic clock; `waiting_for()` says whom unfinished rollouts wait for. `notice` is told of every
    silence, whose limit is another matter."""

    place: Workplace
    gate: EngineGate
    limits_s: Mapping[Component, float]
    progress_s: Callable[[], float]
    waiting_for: Callable[[], Component]
    inflight: Callable[[], int]
    notice: SilenceNotice

    async def run(self) -> None:
        """Raises AttemptOver."""
        while True:
            await asyncio.sleep(WATCH_S)
            self.place.status.inflight = self.inflight()
            await self.place.report_sandbox_seconds()
            await self.look(time.monotonic())
            for ending in self.endings(time.monotonic()):
                raise ending

    async def look(self, now_s: float) -> None:
        """A machine's silence begins with its turn: that rollouts still come home says nothing about it."""
        status = self.place.status
        since_s = max(self.progress_s(), status.since_s) if status.waiting_for in ROLLOUTS else status.since_s
        await self.notice.look(self._culprit(), now_s - since_s, phase=status.phase, now_s=now_s)

    def endings(self, now_s: float) -> Iterator[AttemptOver]:
        """Why the attempt cannot go on, if so."""
        if self.gate.away_since_s is not None and now_s - self.gate.away_since_s >= GIVE_UP_S:
            yield failed(FailureCode.INFERENCE_UNREACHABLE, f"no model call got through for {GIVE_UP_S:.0f} s")
        turn = self.place.status.waiting_for
        silent_s = now_s - max(self.progress_s(), self.place.status.since_s)
        if silent_s >= self.limits_s[turn]:
            yield self._stalled(turn, silent_s)

    def _stalled(self, turn: Component, silent_s: float) -> AttemptOver:
        culprit = self._culprit()
        message = (
            f"nothing has finished for {silent_s:.0f} s; the run waits for the {culprit}: {self.place.status.phase} "
            f"({self.place.status.inflight} rollouts in flight)"
        )
        detail = {"component": culprit, "silent_s": round(silent_s)}
        if culprit is Component.QUEUE:
            return AttemptOver("paused", f"{message}. Resume it when the pool has room.", FailureCode.STALLED, detail)
        return AttemptOver("failed", message, FailureCode.STALLED, detail)

    def _culprit(self) -> Component:
        turn = self.place.status.waiting_for
        return self.waiting_for() if turn in ROLLOUTS else turn
