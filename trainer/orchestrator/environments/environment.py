"""One environment of an attempt: a runner that is started again when it dies, and the tasks it serves.

Knows lives and losses. Refuses to know groups, policies and rewards. A runner that ended, fell silent or broke the protocol is
replaced, a few times; an environment that does not load ends the attempt with the place in its own code.
"""

import asyncio
import time
from collections import deque
from collections.abc import Iterable
from typing import Protocol

from starlette.types import ASGIApp

from trainer.contracts.events import Component, FailureCode
from trainer.contracts.interfaces import Interface
from trainer.contracts.internal import UsageIn
from trainer.contracts.release_checks import Inspection, InspectionRequest
from trainer.contracts.rollouts import GroupScoreRequest, GroupScores, RolloutEnd, RolloutRequest, RunnerHealth, TaskPage
from trainer.orchestrator.attempt.endings import AttemptOver, failed
from trainer.orchestrator.attempt.reporting import Reporter
from trainer.orchestrator.environments.runner_client import RunnerSilent
from trainer.orchestrator.environments.runner_life import RunnerLife, StartRunner
from trainer.orchestrator.environments.task_source import TaskSource
from trainer.orchestrator.proxy.sessions import SessionBook

LOST_IN_A_ROW_MAX = 3
LOST_IN_WINDOW_MAX = 6
LOST_WINDOW_S = 600.0
PAGE_TRIES = 3
LIVE_MAX = 1_000
"""Rollouts at one runner at once; it refuses more than 1,024."""


class Environment:
    """`start` must have returned before anything else is called; `supervise` runs beside the work and raises AttemptOver.
    `meter_name` is unique to this environment and attempt."""

    def __init__(
        self,
        name: str,
        start_runner: StartRunner,
        *,
        model_app: ASGIApp,
        reporter: Reporter,
        meter_name: str,
        seed: int = 0,
        tasks_max: int | None = None,
    ):
        self.name = name
        self.tasks = TaskSource(name, self._page, seed=seed, tasks_max=tasks_max)
        self._start_runner = start_runner
        self._model_app = model_app
        self._reporter = reporter
        self._meter_name = meter_name
        self._life: RunnerLife | None = None
        self._lives = 0
        self._ready = asyncio.Event()
        self._live: dict[str, int] = {}
        self._withdrawn: dict[str, bool] = {}
        self._places = asyncio.Semaphore(LIVE_MAX)
        self._usage: list[UsageIn] = []
        self._lost_at_s: deque[float] = deque(maxlen=LOST_IN_WINDOW_MAX)
        self._lost_in_a_row = 0

    @property
    def health(self) -> RunnerHealth:
        return self._life.health if self._life else RunnerHealth(status="loading")

    @property
    def is_ready(self) -> bool:
        """False while its runner starts, or is started again."""
        return self._ready.is_set()

    @property
    def live_count(self) -> int:
        """Rollouts at the runner now."""
        return len(self._live)

    @property
    def requirements_lock(self) -> str:
        """The extra dependencies of its present life, with their hashes."""
        return self._life.requirements_lock if self._life else ""

    @property
    def interface(self) -> Interface | None:
        """What its package was found to define when it was installed."""
        return self._life.interface if self._life else None

    def logs(self) -> str:
        """What the environment has printed in its present life."""
        return self._life.logs() if self._life else ""

    async def start(self) -> None:
        """Bring the runner up and count its tasks."""
        await self._begin_life()
        await self.tasks.learn(self.health.tasks_count)

    async def supervise(self) -> None:
        """Watch, replace, and give up after too many losses. Runs until cancelled."""
        while True:
            assert self._life is not None
            message = self._loss(await self._life.until_lost())
            self._ready.clear()
            self._life.forward_logs(last=20)
            await self._end_life()
            self._count_loss(message)
            self._reporter.incident(FailureCode.RUNNER_LOST, f"{message}; starting it again", component=Component.SANDBOX)
            await self._begin_life()

    async def stop(self) -> None:
        self._ready.clear()
        await self._end_life()

    def take_usage(self) -> list[UsageIn]:
        """Sandbox seconds that became billable since the last call."""
        fresh = self._life.usage() if self._life else []
        taken, self._usage = self._usage + fresh, []
        return taken

    async def roll(self, request: RolloutRequest) -> RolloutEnd:
        """One rollout; one that was cancelled while it waited for its runner is not begun. Raises RunnerSilent; the supervisor
        then replaces the runner."""
        self._withdrawn[request.rollout_id] = False
        async with self._places:
            life = await self._running()
            if self._withdrawn.pop(request.rollout_id):
                return RolloutEnd(state="cancelled")
            self._live[request.rollout_id] = request.task
            try:
                end = await life.client.roll(request)
            except RunnerSilent as error:
                self._doubt(life, error)
                raise
            finally:
                self._live.pop(request.rollout_id, None)
        self._lost_in_a_row = 0
        return end

    async def cancel(self, rollout_id: str) -> None:
        if rollout_id in self._withdrawn:
            self._withdrawn[rollout_id] = True
        elif self._life is not None and rollout_id in self._live:
            await self._life.client.cancel(rollout_id)

    async def score_group(self, request: GroupScoreRequest) -> GroupScores:
        life = await self._running()
        return await life.client.score_group(request)

    async def inspect(self, request: InspectionRequest) -> Inspection:
        """For a release check. Raises TenantRefused, RunnerSilent."""
        life = await self._running()
        try:
            return await life.client.inspect(request)
        except RunnerSilent as error:
            self._doubt(life, error)
            raise

    async def _running(self) -> RunnerLife:
        await self._ready.wait()
        assert self._life is not None
        return self._life

    def _doubt(self, life: RunnerLife, error: RunnerSilent) -> None:
        """Give this life no more work; its supervisor ends it."""
        life.suspect(str(error))
        if life is self._life:
            self._ready.clear()

    async def _page(self, cursor: int, limit: int) -> TaskPage:
        for left in reversed(range(PAGE_TRIES)):
            life = await self._running()
            try:
                return await life.client.tasks(cursor, limit)
            except RunnerSilent as error:
                self._doubt(life, error)
                if not left:
                    raise failed(FailureCode.RUNNER_LOST, f"{self.name} was lost while listing its tasks: {error}") from error
        raise AssertionError("unreachable")

    async def _begin_life(self) -> None:
        self._lives += 1
        meter_name = f"{self._meter_name}.{self._lives}"
        try:
            self._life = await RunnerLife.begin(
                self.name, self._start_runner, self._model_app, meter_name=meter_name, reporter=self._reporter
            )
        except AttemptOver as ending:
            # What the environment said before it broke: the page, the API and the command line show it by its name.
            for line in str(ending.detail.get("log", "")).splitlines():
                self._reporter.log(line, level="error", component=Component.ENVIRONMENT, environment=self.name)
            raise
        self._ready.set()

    async def _end_life(self) -> None:
        if self._life is not None:
            life, self._life = self._life, None
            self._usage += await life.end()

    def _loss(self, reason: str) -> str:
        running = ", ".join(f"{rollout_id} (task {task})" for rollout_id, task in list(self._live.items())[-5:])
        return f"the runner of {self.name} was lost: {reason}" + (f"; it was running {running}" if running else "")

    def _count_loss(self, message: str) -> None:
        now_s = time.monotonic()
        self._lost_at_s.append(now_s)
        self._lost_in_a_row += 1
        often = len(self._lost_at_s) == LOST_IN_WINDOW_MAX and now_s - self._lost_at_s[0] < LOST_WINDOW_S
        if self._lost_in_a_row > LOST_IN_A_ROW_MAX or often:
            raise failed(FailureCode.RUNNER_LOST, f"{message}; it has been started again too often")


class Readiness(Protocol):
    @property
    def is_ready(self) -> bool: ...


def held_up_by(environments: Iterable[Readiness], sessions: SessionBook, inflight: int) -> Component:
    """Whom `inflight` unfinished rollouts wait for: a runner that is not there, model calls, or the environment's own code."""
    if not all(environment.is_ready for environment in environments):
        return Component.SANDBOX
    return Component.ENGINE if inflight and sessions.live_count >= inflight else Component.ENVIRONMENT
