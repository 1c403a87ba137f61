"""Is the environment failing? A window over the latest rollouts, and the words for its owner.

Knows counts and texts. Refuses to know who pauses the run. Only the environment's own failures count: what the pool breaks
or the orchestrator cancels says nothing about the environment.
"""

from collections import Counter, deque

from trainer.contracts.events import FailureCode
from trainer.orchestrator.endings import AttemptOver
from trainer.orchestrator.groups import TENANT_FAULTS, RolloutOutcome

WINDOW_MIN = 8
WINDOW_MAX = 256


class FailureWindow:
    """`fraction` is the share of a full window's rollouts that may fail."""

    def __init__(self, *, size: int, fraction: float):
        self._errors: deque[str | None] = deque(maxlen=min(WINDOW_MAX, max(WINDOW_MIN, size)))
        self._fraction = fraction

    def add(self, outcome: RolloutOutcome) -> None:
        if outcome.state == "ok":
            self._errors.append(None)
        elif outcome.state in TENANT_FAULTS:
            self._errors.append(outcome.error or outcome.state)

    def verdict(self) -> AttemptOver | None:
        """How the run ends if the window is full and too much of it failed."""
        failures = [error for error in self._errors if error is not None]
        size = len(self._errors)
        if size < (self._errors.maxlen or 0) or len(failures) <= self._fraction * size:
            return None
        common, count = Counter(failures).most_common(1)[0]
        message = (
            f"{len(failures)} of the last {size} rollouts failed, more than the allowed share of {self._fraction:.0%}. "
            f"Most frequent ({count}×): {common}. Fix the environment, push a new version and start a run on it."
        )
        return AttemptOver("paused", message, FailureCode.ENVIRONMENT_FAILING, {"failures": len(failures), "window": size})
