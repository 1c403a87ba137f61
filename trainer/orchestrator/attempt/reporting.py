"""Events on their way to the control plane: numbered, in order, in batches, masked, with limits on what tenant code may say.

Knows the event log's numbering. Refuses to know what the events mean. An event is gone from here once it was accepted.
"""

import asyncio
import logging
from collections import deque
from datetime import UTC, datetime
from typing import Any, Literal

from trainer.contracts.events import Component, EventKind
from trainer.contracts.internal import EventBatch, EventIn
from trainer.contracts.redaction import Redactor
from trainer.orchestrator.attempt.control import ControlClient

FLUSH_S = 0.5
BATCH_MAX = 500
PENDING_MAX = 20_000
MESSAGE_MAX = 2_000

Level = Literal["debug", "info", "warning", "error"]
logger = logging.getLogger("rootstock.orchestrator")


class Reporter:
    """`flush` returns once everything emitted before it has been accepted. `redactor` masks whatever leaves the attempt; whoever
    hands a secret to a sandbox teaches it first."""

    def __init__(self, control: ControlClient, redactor: Redactor | None = None):
        self.redactor = redactor or Redactor()
        self._control = control
        self._pending: deque[EventIn] = deque()
        self._sequence = 0
        self._wake = asyncio.Event()
        self._sending = asyncio.Lock()

    def emit(self, kind: EventKind, payload: dict[str, Any], *, step: int | None = None) -> None:
        self._sequence += 1
        masked = self.redactor.document(payload)
        event = EventIn(sequence=self._sequence, kind=kind, step=step, at=datetime.now(UTC), payload=masked)
        self._pending.append(event)
        if kind is not EventKind.LOG:
            self._wake.set()

    def log(
        self, message: str, *, level: Level = "info", component: Component = Component.ORCHESTRATOR, environment: str = ""
    ) -> None:
        """One line, of one environment where it is named. Lines beyond the limit of pending ones are left out: the log is for
        reading, the other kinds are facts."""
        message = self.redactor.text(message)
        logger.log(logging.getLevelNamesMapping()[level.upper()], "[%s] %s", component, message)
        if len(self._pending) < PENDING_MAX:
            named = {"env_name": environment} if environment else {}
            self.emit(EventKind.LOG, {"component": component, "level": level, "message": message[:MESSAGE_MAX]} | named)

    def incident(
        self, code: str, message: str, *, component: Component = Component.ORCHESTRATOR, step: int | None = None
    ) -> None:
        """Something failed and was handled: the message says what, and what was done about it."""
        message = self.redactor.text(message)
        logger.warning("[%s] %s", component, message)
        self.emit(EventKind.INCIDENT, {"code": code, "message": message[:MESSAGE_MAX], "component": component}, step=step)

    async def run(self) -> None:
        """Send until cancelled. Raises StaleLease."""
        while True:
            try:
                async with asyncio.timeout(FLUSH_S):
                    await self._wake.wait()
            except TimeoutError:
                pass  # nobody rang: what has gathered goes out all the same
            self._wake.clear()
            await self.flush()

    async def flush(self) -> None:
        async with self._sending:
            while self._pending:
                batch = [self._pending[index] for index in range(min(BATCH_MAX, len(self._pending)))]
                await self._control.events(EventBatch(events=batch))
                for _ in batch:
                    self._pending.popleft()
