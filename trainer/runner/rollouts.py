"""Playing rollouts: one task of asyncio each, with a deadline, a way to cancel it, and a sign of life meanwhile.

Knows jobs and clocks. Refuses to know HTTP and the library: it yields wire messages, and what is played is the environment's
affair. A rollout's last message is always a `RolloutEnd`.
"""

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from typing import Literal, Protocol

from trainer.contracts.release_checks import Inspection, InspectionRequest
from trainer.contracts.rollouts import (
    GroupScoreRequest,
    RolloutAlive,
    RolloutEnd,
    RolloutRequest,
    RunnerConfig,
    TaskEntry,
    TenantError,
)
from trainer.runner.faults import from_exception

LIVE_MAX = 1024
_ALIVE_EVERY_S = 5.0
_UNWIND_S = 10.0


class NoSuchTask(Exception):
    """The environment has fewer tasks than the asked-for index."""


class AlreadyLive(Exception):
    """A rollout with this id is being played."""


class Play(Protocol):
    """One rollout of one task. `run` is called once, in a task that may be cancelled at any time."""

    @property
    def turns(self) -> list[int]:
        """Of each agent so far."""
        ...

    async def run(self) -> RolloutEnd: ...

    def deadline_error(self) -> TenantError:
        """What it is at now that its deadline has passed. Asked before it is cancelled."""
        ...

    def cut_off(self, state: Literal["deadline", "cancelled"], errors: list[TenantError]) -> RolloutEnd:
        """The end of one that was cancelled."""
        ...


class HostedEnvironment(Protocol):
    """The tenant's environment in this process, whichever interface its package has. `status` is loading, then ready or broken
    for good; nothing but `load` may be called before it is ready."""

    @property
    def config(self) -> RunnerConfig: ...
    @property
    def status(self) -> Literal["loading", "ready", "broken"]: ...
    @property
    def error(self) -> TenantError | None: ...
    @property
    def tasks_count(self) -> int | None: ...
    @property
    def group_rewards(self) -> list[str]: ...

    async def load(self, stack: AsyncExitStack) -> None:
        """Whatever goes wrong is in `error` afterwards. What it starts lives until `stack` closes."""
        ...

    async def page(self, start: int, limit: int) -> tuple[list[TaskEntry], int | None]:
        """(entries, cursor of the next page or None at the end). Raises what the tenant's code raises."""
        ...

    async def open(self, request: RolloutRequest) -> Play:
        """Raises NoSuchTask, or what the tenant's code raises on the way to the task."""
        ...

    async def inspect(self, asked: InspectionRequest) -> Inspection:
        """For a release check. Raises what the tenant's code raises."""
        ...

    async def score_group(self, request: GroupScoreRequest) -> dict[str, list[float]]:
        """By name of a group reward that it declares. Raises what the tenant's code raises."""
        ...


class Rollouts:
    """The rollouts of one environment that are being played."""

    def __init__(self, environment: HostedEnvironment) -> None:
        self._environment = environment
        self._jobs: dict[str, asyncio.Task[RolloutEnd]] = {}

    @property
    def live(self) -> int:
        return len(self._jobs)

    def cancel(self, rollout_id: str) -> bool:
        """Whether it was live. Its stream then ends with state `cancelled`."""
        job = self._jobs.get(rollout_id)
        return job.cancel() if job else False

    async def play(self, request: RolloutRequest) -> AsyncGenerator[RolloutAlive | RolloutEnd, None]:
        """Raises AlreadyLive, and NoSuchTask or the environment's own error, before the first message."""
        if request.rollout_id in self._jobs:
            raise AlreadyLive(request.rollout_id)
        play = await self._environment.open(request)
        job = asyncio.create_task(play.run())
        self._jobs[request.rollout_id] = job
        try:
            ends_at = time.monotonic() + request.deadline_s
            while not await _settled(job, min(_ALIVE_EVERY_S, ends_at - time.monotonic())):
                if time.monotonic() >= ends_at:
                    error = play.deadline_error()
                    await _unwind(job)
                    yield play.cut_off("deadline", [error])
                    return
                yield RolloutAlive(turns=play.turns)
            yield _end(job, play)
        finally:
            del self._jobs[request.rollout_id]
            job.cancel()


async def _settled(job: asyncio.Task[RolloutEnd], timeout_s: float) -> bool:
    done, _ = await asyncio.wait({job}, timeout=max(0.0, timeout_s))
    return bool(done)


async def _unwind(job: asyncio.Task[RolloutEnd]) -> None:
    """Tenant code may swallow the cancellation; we stop waiting for it."""
    job.cancel()
    await asyncio.wait({job}, timeout=_UNWIND_S)


def _end(job: asyncio.Task[RolloutEnd], play: Play) -> RolloutEnd:
    if job.cancelled():
        return play.cut_off("cancelled", [])
    if error := job.exception():
        return RolloutEnd(state="failed", errors=[from_exception(error)], fault="tenant")
    return job.result()
