"""One pass of an environment over a policy: so many tasks, so many rollouts each, a limit on how many at once.

Knows how to drive and retry evaluation rollouts. Refuses to know reports. The policy is held for the whole pass, so that a
training run that goes on publishing does not unload it.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from trainer.contracts.base import new_id
from trainer.contracts.rollouts import RolloutRequest, RolloutSampling
from trainer.orchestrator.engines.gate import EngineGate
from trainer.orchestrator.engines.policies import Policy
from trainer.orchestrator.environments.environment import Environment
from trainer.orchestrator.environments.runner_client import RunnerSilent
from trainer.orchestrator.proxy.sessions import SessionBook
from trainer.orchestrator.rollouts.rollout import TENANT_FAULTS, Accounted, Rollout, RolloutOutcome
from trainer.orchestrator.rollouts.verdicts import judge, lost

INFRASTRUCTURE_TRIES = 3
CHUNK_TASKS = 16

OnChunk = Callable[[int, list[Accounted]], Awaitable[None]]
"""(number, rollouts): a chunk holds the same tasks whenever a pass is repeated, so that its report is idempotent."""


@dataclass(frozen=True, slots=True)
class EvalPass:
    """`tasks` are indices of the taskset; `on_end` is told of every rollout that ended, one that is repeated too."""

    environment: Environment
    policy: Policy
    tasks: tuple[int, ...]
    rollouts_per_example: int
    sampling: RolloutSampling
    deadline_s: float
    concurrency: int
    gate: EngineGate
    on_end: Callable[[], None] = lambda: None

    async def run(self, sessions: SessionBook, on_chunk: OnChunk) -> None:
        """Drive all of it; each chunk of tasks is handed over once all of its rollouts have ended."""
        chunks = [self.tasks[start : start + CHUNK_TASKS] for start in range(0, len(self.tasks), CHUNK_TASKS)]
        jobs = iter(
            [(number, task) for number, chunk in enumerate(chunks) for task in chunk for _ in range(self.rollouts_per_example)]
        )
        done: dict[int, list[Accounted]] = {number: [] for number in range(len(chunks))}

        async def work() -> None:
            for number, task in jobs:
                done[number].append(await self._one(task, sessions))
                if len(done[number]) == len(chunks[number]) * self.rollouts_per_example:
                    await on_chunk(number, done.pop(number))

        async with asyncio.TaskGroup() as workers:
            for _ in range(min(self.concurrency, len(self.tasks) * self.rollouts_per_example)):
                workers.create_task(work())

    async def _one(self, task: int, sessions: SessionBook) -> Accounted:
        entry = await self.environment.tasks.at(task)
        name = self.environment.name
        for _ in range(INFRASTRUCTURE_TRIES):
            started_s = time.monotonic()
            rollout = Rollout(new_id(), f"task-{task}", name, task, entry.key, entry.preview, self.policy.version, started_s)
            outcome = await self._rolled(rollout, sessions)
            rollout.outcome, rollout.ended_s = outcome, time.monotonic()
            self.on_end()
            if outcome.state != "infrastructure":
                break
        state = outcome.state
        return Accounted(rollout, state, trained=False, staleness=0, billed=state == "ok" or state in TENANT_FAULTS)

    async def _rolled(self, rollout: Rollout, sessions: SessionBook) -> RolloutOutcome:
        request = RolloutRequest(
            rollout_id=rollout.rollout_id,
            task=rollout.task,
            policy=self.policy.engine_name,
            client="eval",
            sampling=self.sampling,
            deadline_s=self.deadline_s,
        )
        try:
            end = await self.environment.roll(request)
        except RunnerSilent as error:
            sessions.forgive(rollout.environment)
            return lost("infrastructure", f"the runner was lost: {error}")
        return judge(
            end,
            sessions,
            environment=rollout.environment,
            engine_name=self.policy.engine_name,
            needs_tokens=False,
            engine_was_away=self.gate.was_away(since_s=rollout.started_s),
        )
