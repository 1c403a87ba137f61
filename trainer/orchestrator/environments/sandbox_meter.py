"""Seconds of one sandbox's life, cut into minutes that are billed once each.

Knows time and sequence names. Refuses to know sandboxes. A minute's interval is [from, to): closed by the end of the minute or
of the sandbox, so that no second is billed twice.
"""

from datetime import UTC, datetime

from trainer.contracts.events import Meter
from trainer.contracts.internal import UsageIn

MINUTE_S = 60


class SandboxMeter:
    """`name` is unique inside the subject and segment, e.g. `<attempt>.<serial of the sandbox>`."""

    def __init__(self, name: str, *, started_s: float):
        self._name = name
        self._started_s = started_s
        self._billed_s = 0

    def due(self, now_s: float, *, ended: bool = False) -> list[UsageIn]:
        """What has become billable since the last call: whole minutes, and the rest once the sandbox has ended."""
        lived_s = int(now_s - self._started_s)
        until_s = lived_s if ended else lived_s - lived_s % MINUTE_S
        events = []
        while self._billed_s < until_s:
            minute = self._billed_s // MINUTE_S
            quantity = min(until_s, (minute + 1) * MINUTE_S) - self._billed_s
            events.append(
                UsageIn(meter=Meter.SANDBOX_SECONDS, sequence=f"{self._name}.{minute}", quantity=quantity, at=datetime.now(UTC))
            )
            self._billed_s += quantity
        return events
