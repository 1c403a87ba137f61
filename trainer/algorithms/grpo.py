"""GRPO: a rollout is as good as its reward exceeds the mean of its group.

Source: docs/algorithms.md, "Algorithms". Without division by the standard deviation unless asked, so that groups of which
nearly all rollouts agree are not blown up. The length penalty shrinks what a success is worth and leaves failures alone: a wrong
answer gains nothing by being short.
"""

import statistics
from collections.abc import Sequence
from typing import TypeVar

from trainer.algorithms.group_relative import GroupRelative
from trainer.contracts.algorithms import GrpoOptions

GrpoLike = TypeVar("GrpoLike", bound=GrpoOptions)


class GrpoBase(GroupRelative[GrpoLike]):
    def advantages(self, rewards: Sequence[float], completion_tokens: Sequence[int]) -> list[float]:
        """Sum to zero."""
        shaped = penalized(rewards, completion_tokens, penalty=self._options.length_penalty)
        return centred(shaped, divide_by_std=self._options.divide_by_std)


class Grpo(GrpoBase[GrpoOptions]):
    id = "grpo"


def centred(rewards: Sequence[float], *, divide_by_std: bool) -> list[float]:
    """R − mean(R), exactly zero where all are equal: the rounding of a mean is no signal."""
    if not rewards or min(rewards) == max(rewards):
        return [0.0] * len(rewards)
    mean = statistics.fmean(rewards)
    spread = statistics.pstdev(rewards) if divide_by_std else 1.0
    return [(reward - mean) / spread for reward in rewards]


def penalized(rewards: Sequence[float], completion_tokens: Sequence[int], *, penalty: float) -> list[float]:
    """R / (1 + penalty · n / mean(n)) for rewards above 0, n being the tokens that the rollout sampled; others as they are."""
    if not penalty or not any(completion_tokens):
        return list(rewards)
    mean = statistics.fmean(completion_tokens)
    pairs = zip(rewards, completion_tokens, strict=True)
    return [reward / (1 + penalty * count / mean) if reward > 0 else reward for reward, count in pairs]
