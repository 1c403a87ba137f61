"""From a complete group to advantages: the environment's group rewards first, then the run's algorithm.

Knows who says what. Refuses to know formulas: they stand in `trainer.algorithms`.
"""

import time
from collections.abc import Mapping
from dataclasses import replace

from trainer.algorithms import Algorithm
from trainer.contracts.rollouts import GroupMember, GroupScoreRequest
from trainer.orchestrator.environments import Environment
from trainer.orchestrator.groups import Group, Rollout
from trainer.orchestrator.runner_client import RunnerSilent, TenantRefused


class GroupScorer:
    def __init__(self, algorithm: Algorithm, environments: Mapping[str, Environment]):
        self._algorithm = algorithm
        self._environments = environments

    async def __call__(self, group: Group) -> None:
        """Set the advantage of each valid rollout. A group whose own rewards cannot be had is failed as a whole."""
        environment, started_s = self._environments[group.environment], time.monotonic()
        if environment.health.has_group_rewards:
            try:
                await self._apply_group_rewards(environment, group)
            except (TenantRefused, RunnerSilent) as error:
                for rollout in group.valid:
                    _fail(rollout, f"group reward: {error}")
        valid = group.valid
        rewards = [_reward(rollout) for rollout in valid]
        for rollout, advantage in zip(valid, self._algorithm.advantages(rewards), strict=True):
            rollout.advantage = advantage
        group.scoring_s = time.monotonic() - started_s

    async def _apply_group_rewards(self, environment: Environment, group: Group) -> None:
        members = [
            GroupMember(rollout_id=rollout.rollout_id, reward=_reward(rollout), completion_tokens=_sampled(rollout))
            for rollout in group.valid
        ]
        scores = await environment.score_group(GroupScoreRequest(task=group.task, members=members))
        for rollout in group.valid:
            score = scores.scores.get(rollout.rollout_id)
            if score is None:
                _fail(rollout, "the group reward left this rollout out")
            elif rollout.outcome is not None:
                rollout.outcome = replace(rollout.outcome, reward=score)


def _reward(rollout: Rollout) -> float:
    assert rollout.outcome is not None and rollout.outcome.reward is not None
    return rollout.outcome.reward


def _sampled(rollout: Rollout) -> int:
    return sum(call.output_tokens for call in rollout.outcome.calls) if rollout.outcome else 0


def _fail(rollout: Rollout, error: str) -> None:
    assert rollout.outcome is not None
    rollout.outcome = replace(rollout.outcome, state="failed", reward=None, error=error)
