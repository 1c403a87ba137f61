"""The order of an environment's tasks: shuffled anew each epoch from the run's seed, continued by position after a restart.

Knows positions and seeds. Refuses to know tasks: `index_at` answers a number, whoever asks fetches the row.
"""

import random

SHUFFLED_MAX = 1_000_000


class TaskOrder:
    """`tasks_count` None means a taskset without a known end: it is read in its own order."""

    def __init__(self, *, seed: int, environment: str, tasks_count: int | None):
        if tasks_count is not None and tasks_count < 1:
            raise ValueError(f"environment {environment} has no tasks")
        self._key = f"{seed}:{environment}"
        self._tasks_count = tasks_count
        self._epoch = -1
        self._order: list[int] = []

    def index_at(self, position: int) -> int:
        """The task at the given position of the endless stream."""
        if self._tasks_count is None:
            return position
        epoch, offset = divmod(position, self._tasks_count)
        if self._tasks_count > SHUFFLED_MAX:
            return offset
        if epoch != self._epoch:
            self._order = list(range(self._tasks_count))
            random.Random(f"{self._key}:{epoch}").shuffle(self._order)
            self._epoch = epoch
        return self._order[offset]
