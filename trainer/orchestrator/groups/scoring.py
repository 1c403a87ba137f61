"""From a complete group to its lessons: the environment's group rewards first, then the algorithm of that environment.

Knows who says what. Refuses to know formulas: they stand in `trainer.algorithms`.
"""

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from trainer.algorithms import Algorithm, GroupUnfit, SignalsLost
from trainer.contracts.events import FailureCode
from trainer.orchestrator.attempt.endings import failed
from trainer.orchestrator.environments.runner_client import RunnerSilent, TenantRefused
from trainer.orchestrator.groups.rewards import GroupRewards
from trainer.orchestrator.groups.views import GroupStudy
from trainer.orchestrator.rollouts.rollout import Group, Rollout
from trainer.orchestrator.rollouts.verdicts import describe

AlgorithmState = dict[str, dict[str, float]]
"""By environment: what its algorithm remembers from one group to the next."""


class GroupScorer:
    """`algorithms` has one instance per environment: what it remembers of one says nothing about another. So has `rewards`."""

    def __init__(self, algorithms: Mapping[str, Algorithm[Any]], rewards: Mapping[str, GroupRewards]):
        self._algorithms = algorithms
        self._rewards = rewards

    def check(self) -> None:
        """Once the environments have started. Raises AttemptOver where a chosen group reward does not exist."""
        for rewards in self._rewards.values():
            rewards.check()

    async def __call__(self, group: Group) -> None:
        """Set the lessons of each valid rollout. A group that cannot be scored is failed as a whole.
        Raises AttemptOver where no further group could be scored either."""
        started_s = time.monotonic()
        rewards = self._rewards[group.environment]
        is_compared = bool(rewards.weights)
        if is_compared:
            await self._compare(group, rewards)
        if group.is_worth_scoring:
            await self._teach(group, has_group_rewards=is_compared)
        group.scoring_s = time.monotonic() - started_s

    def state(self) -> AlgorithmState:
        """What the step's record keeps; environments whose algorithm remembers nothing are left out."""
        states = {name: algorithm.state() for name, algorithm in self._algorithms.items()}
        return {name: state for name, state in states.items() if state}

    def restore(self, state: AlgorithmState) -> None:
        for name, algorithm in self._algorithms.items():
            algorithm.restore(state.get(name, {}))

    async def _teach(self, group: Group, *, has_group_rewards: bool) -> None:
        study = GroupStudy(group, has_group_rewards=has_group_rewards)
        try:
            study.teach(await self._algorithms[group.environment].score(study.view()))
        except SignalsLost as error:
            for rollout in group.valid:
                _fail(rollout, str(error), state="infrastructure")
        except GroupUnfit as error:
            raise failed(FailureCode.ENVIRONMENT_FAILING, str(error)) from error

    async def _compare(self, group: Group, rewards: GroupRewards) -> None:
        try:
            await rewards.add_to(group)
        except TenantRefused as error:
            for rollout in group.valid:
                _fail(rollout, f"group reward: {describe(error.error)}")
        except RunnerSilent as error:
            for rollout in group.valid:
                _fail(rollout, f"group reward: {error}", state="infrastructure")


def _fail(rollout: Rollout, error: str, *, state: Literal["failed", "infrastructure"] = "failed") -> None:
    assert rollout.outcome is not None
    rollout.outcome = replace(rollout.outcome, state=state, reward=None, error=error)
