"""The tenant's environment in this process: loaded within a deadline, its tasks read lazily, its servers held open.

Knows the library's taskset and env. Refuses to know HTTP and how a rollout goes.
"""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack

import verifiers.v1 as vf
from verifiers.v1.envs.single_agent import SingleAgentEnv

from trainer.contracts.release_checks import Inspection, InspectionRequest
from trainer.contracts.rollouts import TEXT_MAX, GroupScoreRequest, RolloutRequest, RunnerConfig, TaskEntry
from trainer.runner.chat_harness import HARNESS_ID
from trainer.runner.episodes import EpisodePlay
from trainer.runner.faults import clean
from trainer.runner.group_rewards import declared, score
from trainer.runner.limits import KEY_CHARS, PREVIEW_CHARS
from trainer.runner.loading import LoadedEnvironment
from trainer.runner.rollouts import NoSuchTask
from trainer.runner.seats import environment_config, harness_id

TASKS_MAX = 1_000_000


class Environment(LoadedEnvironment):
    def __init__(self, config: RunnerConfig) -> None:
        super().__init__(config)
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

    async def _serve(self, stack: AsyncExitStack) -> None:
        """The tool servers that its tasks share."""
        await stack.enter_async_context(self.env.serving())

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
        from trainer.runner.inspection import inspect  # which only checks need

        return await inspect(self, asked)

    async def open(self, request: RolloutRequest) -> EpisodePlay:
        """Raises NoSuchTask, or what `Taskset.load` raises on the way to it."""
        return EpisodePlay(self.env, await self.task(request.task), request, self.config)

    async def score_group(self, request: GroupScoreRequest) -> dict[str, list[float]]:
        """Raises what the task's group rewards raise."""
        task = await self.task(request.task)
        return {name: await score(task, name, request.members) for name in request.names}

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
        key=clean(task.key, KEY_CHARS),
        preview=clean(text, PREVIEW_CHARS),
        hint=clean(hint, TEXT_MAX) if isinstance(hint, str) else "",
    )
