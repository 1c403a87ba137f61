"""The pulse of an attempt: extends the lease, says what the process is doing, and learns what its owner wants.

Knows the desired state. Refuses to act on it: whoever runs the attempt looks at `desired` between two steps, or waits for it.
"""

import asyncio
import time
from dataclasses import dataclass, field

from trainer.contracts.events import Component
from trainer.contracts.internal import Heartbeat, HeartbeatReply
from trainer.orchestrator.attempt.control import ControlClient
from trainer.orchestrator.attempt.endings import AttemptOver, Outcome

BEATS_PER_LEASE = 4
BEAT_MOST_S = 15.0


@dataclass(slots=True)
class Status:
    """What the run page shows of the process; written by anyone, read by the next beat. `waiting_for` is whose turn it is since
    `since_s` on the monotonic clock."""

    step: int = 0
    phase: str = "starting"
    inflight: int = 0
    waiting_for: Component = Component.ORCHESTRATOR
    since_s: float = field(default_factory=time.monotonic)


@dataclass(slots=True)
class Desire:
    """Latest answer of the control plane. `changed` is set once it is anything but `run`."""

    reply: HeartbeatReply | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def ending(self) -> AttemptOver | None:
        """How the attempt should end by its owner's wish, or None while it should go on."""
        if self.reply is None or self.reply.desired == "run":
            return None
        outcome: Outcome = "paused" if self.reply.desired == "pause" else "stopped"
        return AttemptOver(outcome, self.reply.reason or f"{outcome} on request", self.reply.code)


async def keep_beating(control: ControlClient, status: Status, desire: Desire, *, lease_s: float) -> None:
    """Beat until cancelled. Raises StaleLease."""
    while True:
        beat = Heartbeat(step=status.step, phase=status.phase, inflight=status.inflight)
        reply = await control.heartbeat(beat)
        desire.reply = reply
        if reply.desired != "run":
            desire.changed.set()
        await asyncio.sleep(min(BEAT_MOST_S, (reply.lease_s or lease_s) / BEATS_PER_LEASE))
