"""What a rollout earns by comparison with the others of its group, on top of its own reward.

Knows the built-in comparisons, and asks the environment for those that it declares: they run in its sandbox. Refuses to know
algorithms. Each part is kept beside the rollout's own parts, under `group/<name>`, before it is weighted.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from trainer.contracts.events import FailureCode
from trainer.contracts.rollouts import GroupMember, GroupScoreRequest, GroupScores, MemberTrace, RunnerHealth, TenantError
from trainer.contracts.run_config import GroupReward
from trainer.orchestrator.attempt.endings import failed
from trainer.orchestrator.environments.recordings import AnyEnvironment
from trainer.orchestrator.environments.runner_client import TenantRefused
from trainer.orchestrator.groups.views import completion_tokens, reward_of
from trainer.orchestrator.rollouts.rollout import Group, Rollout

CORRECT = 1.0
"""A rollout whose own reward is at least this has done its task."""


def shortest_correct(members: Sequence[GroupMember]) -> list[float]:
    """1.0 for the correct rollout in which the model wrote the fewest tokens, and for its equals; 0.0 for all others."""
    lengths = [member.completion_tokens for member in members if member.reward >= CORRECT]
    shortest = min(lengths, default=None)
    return [float(member.reward >= CORRECT and member.completion_tokens == shortest) for member in members]


BUILT_IN: dict[str, Callable[[Sequence[GroupMember]], list[float]]] = {"shortest_correct": shortest_correct}


class GroupRewards:
    """Those of one environment of a run. `chosen` None takes all that the environment declares."""

    def __init__(self, environment: AnyEnvironment, chosen: Sequence[GroupReward] | None) -> None:
        self._environment = environment
        self._chosen = chosen

    @property
    def weights(self) -> dict[str, float]:
        """Weight by name; empty where rollouts are not compared. Known once the environment has started."""
        if self._chosen is None:
            return dict.fromkeys(self._declared, 1.0)
        return {reward.name: reward.weight for reward in self._chosen}

    def check(self) -> None:
        """Raises AttemptOver where one was chosen that nobody declares."""
        for name in self.weights:
            if name not in BUILT_IN and name not in self._declared:
                known = ", ".join([*BUILT_IN, *self._declared])
                raise failed(
                    FailureCode.ENVIRONMENT_BROKEN,
                    f"environments.{self._environment.name}.group_rewards: {name!r} is neither built in nor declared by the "
                    f"environment as group_reward_{name}; there are {known}",
                )

    async def add_to(self, group: Group) -> None:
        """Pay the valid rollouts. Raises TenantRefused, RunnerSilent."""
        rollouts, weights = group.valid, self.weights
        members = [_member(rollout) for rollout in rollouts]
        scores = {name: BUILT_IN[name](members) for name in weights if name in BUILT_IN}
        if names := [name for name in weights if name not in BUILT_IN]:
            request = GroupScoreRequest(task=group.task, names=names, members=members)
            scores |= _checked(await self._environment.score_group(request), request)
        for index, rollout in enumerate(rollouts):
            _pay(rollout, {name: (scores[name][index], weight) for name, weight in weights.items()})

    @property
    def _declared(self) -> list[str]:
        health: RunnerHealth = self._environment.health
        return health.group_rewards


def _checked(answer: GroupScores, request: GroupScoreRequest) -> dict[str, list[float]]:
    """Whatever answers shares its process with the tenant's code."""
    if set(answer.scores) != set(request.names) or any(len(row) != len(request.members) for row in answer.scores.values()):
        raise TenantRefused(TenantError(type="BadGroupScores", message="the group rewards left rollouts of the group out"))
    return answer.scores


def _member(rollout: Rollout) -> GroupMember:
    outcome = rollout.outcome
    assert outcome is not None
    return GroupMember(
        rollout_id=rollout.rollout_id,
        reward=reward_of(rollout),
        rewards=outcome.rewards,
        metrics=outcome.metrics,
        completion_tokens=completion_tokens(rollout),
        traces=[MemberTrace(agent=trace.report.agent, messages=trace.report.messages) for trace in outcome.traces],
    )


def _pay(rollout: Rollout, parts: dict[str, tuple[float, float]]) -> None:
    """`parts`: (score, weight) by name."""
    outcome = rollout.outcome
    assert outcome is not None
    rollout.outcome = replace(
        outcome,
        reward=reward_of(rollout) + sum(score * weight for score, weight in parts.values()),
        rewards=outcome.rewards | {f"group/{name}": score for name, (score, _) in parts.items()},
    )
