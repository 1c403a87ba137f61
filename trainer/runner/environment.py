"""The tenant's environment in this process: loaded within a deadline, its tasks read lazily, its servers held open.

Knows the library's taskset and env. Refuses to know HTTP and rollouts. Nothing that tenant code raises while loading, SystemExit
included, gets past `load`: the environment is then broken, with the module and line that broke it.
"""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import AsyncExitStack
from typing import Literal

import verifiers.v1 as vf
from verifiers.v1.envs.single_agent import SingleAgentEnv

from trainer.contracts.release_checks import Inspection, InspectionRequest
from trainer.contracts.rollouts import TEXT_MAX, RunnerConfig, TaskEntry, TenantError
from trainer.runner.chat_harness import HARNESS_ID
from trainer.runner.faults import clean, from_exception
from trainer.runner.group_rewards import declared
from trainer.runner.seats import environment_config, harness_id

log = logging.getLogger(__name__)
TASKS_MAX = 1_000_000
_PREVIEW_CHARS = 200
_KEY_CHARS = 512


class NoSuchTask(Exception):
    """The taskset ends before the asked-for index."""


class Environment:
    """`status` is loading, then ready or broken for good."""

    def __init__(self, config: RunnerConfig) -> None:
        self.config = config
        self.status: Literal["loading", "ready", "broken"] = "loading"
        self.error: TenantError | None = None
        self.tasks_count: int | None = None
        self.group_rewards: list[str] = []
        self._env: vf.Env | None = None
        self._rows: Iterator[vf.Task] = iter(())
        self._tasks: list[vf.Task] = []
        self._reading = asyncio.Lock()

    @property
    def env(self) -> vf.Env:
        assert self._env is not None, "asked before ready"
        return self._env

    @property
    def first_task(self) -> vf.Task:
        return self._tasks[0]

    @property
    def asks_by_prompt(self) -> bool:
        """Whether a rollout begins with the task's prompt; a package's own harness or agents may begin otherwise."""
        return isinstance(self.env, SingleAgentEnv) and harness_id(self.config.environment) == HARNESS_ID

    async def load(self, stack: AsyncExitStack) -> None:
        """Import, construct, read one task, start shared servers. What it starts lives until `stack` closes."""
        try:
            async with asyncio.timeout(self.config.limits.load_s):
                # In a thread, so that a tenant's endless import leaves the loop free to notice.
                await asyncio.to_thread(self._construct)
                await stack.enter_async_context(self.env.serving())
            self.status = "ready"
        except TimeoutError:
            self._break(TenantError(type="Timeout", message=f"loading took longer than {self.config.limits.load_s:g} s"))
        except (Exception, SystemExit) as error:
            # The owner reads this in the release's or the run's log; the health check carries one line of it.
            log.error("the environment does not load", exc_info=error)
            self._break(from_exception(error))

    def _break(self, error: TenantError) -> None:
        self.status, self.error = "broken", error

    def _construct(self) -> None:
        self._env = vf.load_environment(environment_config(self.config))
        self._rows = iter(self._env.taskset)
        self._read_until(1)
        if not self._tasks:
            raise ValueError("the taskset has no tasks")
        self.group_rewards = declared(self._tasks[0])

    async def task(self, index: int) -> vf.Task:
        """Raises NoSuchTask, or what `Taskset.load` raises on the way to it."""
        await self._read(index + 1)
        if index >= len(self._tasks):
            raise NoSuchTask(f"no task {index}: the taskset has {len(self._tasks)}")
        return self._tasks[index]

    async def inspect(self, asked: InspectionRequest) -> Inspection:
        """For a release check. Raises what the tenant's classes raise when they are asked for what they need."""
        from trainer.runner.inspection import inspect  # it knows this class, and only checks need it

        return await inspect(self, asked)

    async def page(self, start: int, limit: int) -> tuple[list[TaskEntry], int | None]:
        """(entries, cursor of the next page or None at the end)."""
        await self._read(start + limit)
        entries = [_entry(start + offset, task) for offset, task in enumerate(self._tasks[start : start + limit])]
        return entries, start + limit if len(entries) == limit else None

    async def _read(self, count: int) -> None:
        if len(self._tasks) >= count or self.tasks_count is not None:
            return
        async with self._reading:
            await asyncio.to_thread(self._read_until, min(count, TASKS_MAX))

    def _read_until(self, count: int) -> None:
        while len(self._tasks) < count:
            task = next(self._rows, None)
            if task is None:
                self.tasks_count = len(self._tasks)
                return
            self._tasks.append(task)


def _entry(index: int, task: vf.Task) -> TaskEntry:
    prompt = task.data.prompt
    text = prompt if isinstance(prompt, str) else " ".join(str(getattr(part, "content", "")) for part in prompt or [])
    hint = getattr(task.data, "hint", None)
    return TaskEntry(
        index=index,
        key=clean(task.key, _KEY_CHARS),
        preview=clean(text, _PREVIEW_CHARS),
        hint=clean(hint, TEXT_MAX) if isinstance(hint, str) else "",
    )
