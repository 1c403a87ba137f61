"""Which tasks of an environment are worth drawing: their difficulty, read from the rewards of their latest groups.

Knows rewards by task, thresholds and chances. Refuses to know the order of tasks: whoever draws asks for each position whether
the task that stands there is taken. A chance is a number of seed and position alone, so that a run which goes on from a saved
state draws what it would have drawn.
"""

import random
from collections.abc import Sequence
from statistics import fmean, pvariance

from trainer.contracts.base import Wire
from trainer.contracts.run_config import Curriculum

TASKS_KEPT = 20_000
"""Those that were learnt from longest ago are forgotten first, and are drawn as if they were new."""

Latest = list[tuple[float, float]]
"""(mean, variance) of the rewards of a task's latest groups, the oldest first."""


class CurriculumState(Wire):
    """`groups` by task, the one that was learnt from longest ago first. `passed` counts the positions of the order that were
    passed over since the run's start."""

    groups: dict[int, Latest] = {}
    passed: int = 0


class TaskChooser:
    """`learn` after each group, `takes` before each draw."""

    def __init__(self, config: Curriculum, *, seed: int, environment: str):
        self._config = config
        self._key = f"{seed}:{environment}:curriculum"
        self._groups: dict[int, Latest] = {}
        self._passed = 0
        self._taken = self._skipped = 0
        self._widest: float | None = None

    def learn(self, task: int, rewards: Sequence[float]) -> None:
        """What the valid rollouts of one more group of the task have earned."""
        latest = [*self._groups.pop(task, []), (fmean(rewards), pvariance(rewards))]
        self._groups[task] = latest[-self._config.groups :]
        if len(self._groups) > TASKS_KEPT:
            del self._groups[next(iter(self._groups))]
        self._widest = None

    def takes(self, task: int, position: int, *, is_last: bool = False) -> bool:
        """Whether the task is drawn at this position of the order; the last one that may be passed over is."""
        chance = self.chance(task)
        taken = is_last or chance >= 1 or random.Random(f"{self._key}:{position}").random() < chance
        self._taken += taken
        self._skipped += not taken
        self._passed += not taken
        return taken

    def chance(self, task: int) -> float:
        """1 for what nothing is known of."""
        latest = self._groups.get(task, [])
        if self._is_easy(latest) or self._is_hard(latest):
            return self._config.revisit
        if self._config.weight == "uniform" or not latest:
            return 1.0
        return max(self._config.revisit, _variance(latest) / widest) if (widest := self._widest_variance()) else 1.0

    def state(self) -> CurriculumState:
        return CurriculumState(groups={task: list(latest) for task, latest in self._groups.items()}, passed=self._passed)

    def restore(self, state: CurriculumState) -> None:
        self._groups, self._passed, self._widest = dict(state.groups), state.passed, None

    def take_metrics(self) -> dict[str, float]:
        """The share of positions passed over since the last call, and how many of the known tasks are of which kind now."""
        seen, skipped = self._taken + self._skipped, self._skipped
        self._taken = self._skipped = 0
        easy = sum(map(self._is_easy, self._groups.values()))
        hard = sum(map(self._is_hard, self._groups.values()))
        return {
            "tasks_skipped_fraction": skipped / seen if seen else 0.0,
            "tasks_easy": easy,
            "tasks_hard": hard,
            "tasks_between": len(self._groups) - easy - hard,
        }

    def _is_easy(self, latest: Latest) -> bool:
        limit = self._config.easy_threshold
        return len(latest) >= self._config.groups and all(mean >= limit for mean, _ in latest)

    def _is_hard(self, latest: Latest) -> bool:
        limit = self._config.hard_threshold
        return len(latest) >= self._config.groups and all(mean <= limit for mean, _ in latest)

    def _widest_variance(self) -> float:
        if self._widest is None:
            self._widest = max(map(_variance, self._groups.values()))
        return self._widest


def _variance(latest: Latest) -> float:
    return fmean(variance for _, variance in latest)
