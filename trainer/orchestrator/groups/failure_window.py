"""Do too many rollouts fail? Two windows over the latest ones, and the words for the run's owner.

Knows counts and texts. Refuses to know who pauses the run. The environment's own failures and ours are counted apart: each says
nothing about the other. Our window is longer, so that one sandbox that is lost with a batch in flight is no reason to pause.
"""

from collections import Counter, deque
from dataclasses import dataclass, field

from trainer.contracts.events import FailureCode
from trainer.orchestrator.attempt.endings import AttemptOver
from trainer.orchestrator.rollouts.rollout import BILLED, RolloutOutcome

WINDOW_MIN = 8
WINDOW_MAX = 256
OURS_FACTOR = 4


@dataclass(slots=True)
class Window:
    """The latest `size` rollouts: None for one that did not fail, else why it did. What its owner's filters found cannot be
    trained on either."""

    size: int
    errors: deque[str | None] = field(init=False)

    def __post_init__(self) -> None:
        self.errors = deque(maxlen=self.size)

    def summary(self, fraction: float) -> str | None:
        """What is wrong once the window is full and more than the allowed share of it failed."""
        failures = [error for error in self.errors if error is not None]
        if len(self.errors) < self.size or len(failures) <= fraction * self.size:
            return None
        common, count = Counter(failures).most_common(1)[0]
        return (
            f"{len(failures)} of the last {self.size} rollouts failed, more than the allowed share of {fraction:.0%}. "
            f"Most frequent ({count}×): {common}"
        )

    @property
    def detail(self) -> dict[str, int]:
        return {"failures": sum(error is not None for error in self.errors), "window": self.size}


class FailureWindow:
    """`fraction` is the share of a full window's rollouts that may fail."""

    def __init__(self, *, size: int, fraction: float):
        size = min(WINDOW_MAX, max(WINDOW_MIN, size))
        self._theirs, self._ours = Window(size), Window(OURS_FACTOR * size)
        self._fraction = fraction

    def add(self, outcome: RolloutOutcome) -> None:
        """Rollouts that we cancelled or dropped as too old say nothing."""
        error = outcome.error or outcome.state
        if outcome.state == "ok":
            self._theirs.errors.append(None)
            self._ours.errors.append(None)
        elif outcome.state in BILLED:
            self._theirs.errors.append(error)
            self._ours.errors.append(None)
        elif outcome.state == "infrastructure":
            self._ours.errors.append(error)

    def verdict(self) -> AttemptOver | None:
        """How the run ends if too much failed."""
        if (theirs := self._theirs.summary(self._fraction)) is not None:
            message = f"{theirs}. Fix the environment, push a new version and start a run on it."
            return AttemptOver("paused", message, FailureCode.ENVIRONMENT_FAILING, self._theirs.detail)
        if (ours := self._ours.summary(self._fraction)) is not None:
            message = f"{ours}. The failures are ours: they were masked and cost nothing. Resume the run later."
            return AttemptOver("paused", message, FailureCode.ROLLOUTS_LOST, self._ours.detail)
        return None
