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

OnRollout = Callable[[Accounted], Awaitable[None]]
"""Told of each rollout once it is settled."""


@dataclass(frozen=True, slots=True)
class EvalPass:
    """`tasks` are indices of the taskset; `done` are the (task, number) pairs that an earlier pass has settled; `on_end` is told
    of every rollout that ended, one that is repeated too."""

    environment: Environment
    policy: Policy
    tasks: tuple[int, ...]
    rollouts_per_example: int
    sampling: RolloutSampling
    deadline_s: float
    concurrency: int
    gate: EngineGate
    on_end: Callable[[], None] = lambda: None
    done: frozenset[tuple[int, int]] = frozenset()
    is_metered: bool = True
    """Whether its tokens are ours to bill."""

    async def run(self, sessions: SessionBook, on_rollout: OnRollout) -> None:
        """Drive all that is not done, task by task."""
        numbers = range(self.rollouts_per_example)
        wanted = [(task, number) for task in self.tasks for number in numbers if (task, number) not in self.done]
        jobs = iter(wanted)

        async def work() -> None:
            for task, number in jobs:
                await on_rollout(await self._one(task, number, sessions))

        async with asyncio.TaskGroup() as workers:
            for _ in range(min(self.concurrency, len(wanted))):
                workers.create_task(work())

    async def _one(self, task: int, number: int, sessions: SessionBook) -> Accounted:
        entry = await self.environment.tasks.at(task)
        name = self.environment.name
        for _ in range(INFRASTRUCTURE_TRIES):
            started_s = time.monotonic()
            version = self.policy.version
            rollout = Rollout(new_id(), f"task-{task}", name, task, entry.key, entry.preview, version, started_s, number=number)
            outcome = await self._rolled(rollout, sessions)
            rollout.outcome, rollout.ended_s = outcome, time.monotonic()
            self.on_end()
            if outcome.state != "infrastructure":
                break
        state = outcome.state
        is_billed = self.is_metered and (state == "ok" or state in TENANT_FAULTS)
        return Accounted(rollout, state, trained=False, staleness=0, billed=is_billed)

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
