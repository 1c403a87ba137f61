"""GRPO: a rollout is as good as its reward exceeds the mean of its group.

Source: docs/algorithms.md, "Algorithms". Without division by the standard deviation unless asked, so that groups of which
nearly all rollouts agree are not blown up.
"""

import statistics
from collections.abc import Sequence

from trainer.algorithms.group_relative import GroupRelative
from trainer.contracts.algorithms import GrpoOptions


class Grpo(GroupRelative[GrpoOptions]):
    id = "grpo"

    def advantages(self, rewards: Sequence[float], completion_tokens: Sequence[int]) -> list[float]:
        """Sum to zero."""
        return centred(rewards, divide_by_std=self._options.divide_by_std)


def centred(rewards: Sequence[float], *, divide_by_std: bool) -> list[float]:
    """R − mean(R), exactly zero where all are equal: the rounding of a mean is no signal."""
    if not rewards or min(rewards) == max(rewards):
        return [0.0] * len(rewards)
    mean = statistics.fmean(rewards)
    spread = statistics.pstdev(rewards) if divide_by_std else 1.0
    return [(reward - mean) / spread for reward in rewards]
