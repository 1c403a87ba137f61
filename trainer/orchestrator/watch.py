"""What looks after an attempt while it works: meters its sandboxes, and notices what has been stuck for too long.

Knows limits on silence. Refuses to know what the attempt does: it is told when something last finished.
"""

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from trainer.contracts.events import FailureCode
from trainer.orchestrator.endings import AttemptOver, failed
from trainer.orchestrator.engine_gate import EngineGate
from trainer.orchestrator.services import GIVE_UP_S
from trainer.orchestrator.workplace import Workplace

WATCH_S = 5.0
STALL_MIN_S = 900.0
STALL_DEADLINES = 3


@dataclass(frozen=True, slots=True)
class Watch:
    """`deadline_s` of one rollout; `progress_s()` on the monotonic clock."""

    place: Workplace
    gate: EngineGate
    deadline_s: float
    progress_s: Callable[[], float]
    inflight: Callable[[], int]

    async def run(self) -> None:
        """Raises AttemptOver."""
        while True:
            await asyncio.sleep(WATCH_S)
            self.place.status.inflight = self.inflight()
            await self.place.report_sandbox_seconds()
            for ending in self.endings(time.monotonic()):
                raise ending

    def endings(self, now_s: float) -> Iterator[AttemptOver]:
        """Why the attempt cannot go on, if so."""
        if self.gate.away_since_s is not None and now_s - self.gate.away_since_s >= GIVE_UP_S:
            yield failed(FailureCode.INFERENCE_UNREACHABLE, f"no model call got through for {GIVE_UP_S:.0f} s")
        silent_s = now_s - self.progress_s()
        if silent_s >= max(STALL_MIN_S, STALL_DEADLINES * self.deadline_s):
            waiting = f"{self.place.status.phase} ({self.place.status.inflight} rollouts in flight)"
            yield failed(FailureCode.STALLED, f"nothing has finished for {silent_s:.0f} s; waiting for: {waiting}")
