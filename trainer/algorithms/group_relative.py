"""Algorithms that compare a rollout with the others of its group: one advantage per rollout, on every token that it sampled.

Knows how an advantage is spread over a rollout. Refuses to know how it is computed; that is each algorithm's own file.
"""

from abc import abstractmethod
from collections.abc import Sequence
from functools import partial

from trainer.algorithms.protocol import (
    Algorithm,
    GroupView,
    OptionsT,
    RolloutSignals,
    Signals,
    Stream,
    per_stream,
    policy_gradient,
)


class GroupRelative(Algorithm[OptionsT]):
    valid_min = 2

    @abstractmethod
    def advantages(self, rewards: Sequence[float], completion_tokens: Sequence[int]) -> list[float]:
        """One advantage per valid rollout of a group, in order; all zero where no rollout is better than another."""

    async def score(self, group: GroupView) -> list[RolloutSignals]:
        advantages = self.advantages(
            [rollout.reward for rollout in group.rollouts], [rollout.completion_tokens for rollout in group.rollouts]
        )
        return [
            per_stream(rollout, advantage, partial(self._signals, advantage=advantage))
            for rollout, advantage in zip(group.rollouts, advantages, strict=True)
        ]

    def _signals(self, stream: Stream, *, advantage: float) -> Signals:
        return policy_gradient(stream, advantage)
