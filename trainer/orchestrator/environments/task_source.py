"""The tasks of one environment, page by page, in the run's order.

Knows how long the taskset is as far as it matters. Refuses to know groups. `position` is the cursor that survives a restart. A
`chooser` may pass over tasks, never over all of them.
"""

from collections.abc import Awaitable, Callable

from trainer.contracts.events import FailureCode
from trainer.contracts.rollouts import TaskEntry, TaskPage
from trainer.orchestrator.attempt.endings import failed
from trainer.orchestrator.environments.curriculum import TaskChooser
from trainer.orchestrator.environments.runner_client import TenantRefused
from trainer.orchestrator.environments.task_order import TaskOrder
from trainer.orchestrator.rollouts.verdicts import describe

PAGE = 200
COUNTED_MAX = 20_000
"""A taskset that is longer than this and does not tell its size is read in its own order instead of being shuffled."""

PASSED_MAX = 10_000
"""Tasks in a row that a chooser may pass over."""

FetchPage = Callable[[int, int], Awaitable[TaskPage]]


class TaskSource:
    """`tasks_max` limits the run to the first so many tasks; None or -1 takes all."""

    def __init__(self, environment: str, fetch: FetchPage, *, seed: int, tasks_max: int | None = None):
        self.position = 0
        self.chooser: TaskChooser | None = None
        self._environment = environment
        self._fetch = fetch
        self._seed = seed
        self._tasks_max = tasks_max if tasks_max is not None and tasks_max > 0 else None
        self._entries: dict[int, TaskEntry] = {}
        self._order: TaskOrder | None = None
        self._count: int | None = None

    @property
    def count(self) -> int | None:
        """Tasks in use; None for a taskset without a known end."""
        return self._count

    async def learn(self, told: int | None) -> int | None:
        """Count the tasks; `told` is the runner's own count. Returns None for a taskset without a known end."""
        count = told if told is not None else await self._counted()
        if self._tasks_max is not None:
            count = self._tasks_max if count is None else min(count, self._tasks_max)
        if count == 0:
            raise failed(FailureCode.ENVIRONMENT_BROKEN, f"{self._environment} has no tasks")
        if count is None and self.chooser is not None:
            raise failed(
                FailureCode.ENVIRONMENT_BROKEN,
                f"{self._environment} does not tell how many tasks it has, so that none comes twice: leave curriculum out, "
                "or give num_examples",
            )
        self._count = count
        self._order = TaskOrder(seed=self._seed, environment=self._environment, tasks_count=count)
        return count

    async def next(self) -> TaskEntry:
        """The task of the next group."""
        if self._order is None:
            raise LookupError("learn() has not been called")
        left = min(self._count or 1, PASSED_MAX)
        while True:
            index, left = self._order.index_at(self.position), left - 1
            self.position += 1
            if self.chooser is None or self.chooser.takes(index, self.position - 1, is_last=not left):
                return await self.at(index)

    async def at(self, index: int) -> TaskEntry:
        if index not in self._entries:
            await self._load(index - index % PAGE)
        if index not in self._entries:
            raise failed(FailureCode.ENVIRONMENT_BROKEN, f"{self._environment} has no task {index}")
        return self._entries[index]

    def first(self, wanted: int) -> tuple[int, ...]:
        """Indices of the first `wanted` tasks; -1 takes all, as far as they have been counted."""
        count = COUNTED_MAX if self._count is None else self._count
        return tuple(range(count if wanted < 0 else min(wanted, count)))

    async def _counted(self) -> int | None:
        limit = min(self._tasks_max or COUNTED_MAX, COUNTED_MAX)
        cursor: int | None = 0
        while cursor is not None:
            if cursor >= limit:
                return None
            cursor = await self._load(cursor)
        return len(self._entries)

    async def _load(self, cursor: int) -> int | None:
        try:
            page = await self._fetch(cursor, PAGE)
        except TenantRefused as broken:
            error = broken.error
            raise failed(
                FailureCode.ENVIRONMENT_BROKEN,
                f"the taskset of {self._environment} fails: {describe(error)}",
                module=error.module,
                line=error.line,
            ) from None
        self._entries |= {entry.index: entry for entry in page.tasks}
        return page.cursor
