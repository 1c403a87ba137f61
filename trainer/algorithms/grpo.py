"""GRPO: a rollout is as good as its reward exceeds the mean of its group.

Source: docs/algorithms.md, "Algorithms". Without division by the standard deviation unless asked, so that groups of which
nearly all rollouts agree are not blown up.
"""

import statistics
from collections.abc import Sequence
from typing import Literal

from trainer.contracts.algorithms import GrpoOptions


class Grpo:
    id = "grpo"
    component: Literal["rl", "ce", "ref_kl"] = "rl"
    valid_min = 2
    Options = GrpoOptions

    def __init__(self, options: GrpoOptions) -> None:
        self._options = options

    def advantages(self, rewards: Sequence[float]) -> list[float]:
        """Sum to zero; all zero where all rewards are equal."""
        if not rewards:
            return []
        mean = statistics.fmean(rewards)
        centred = [reward - mean for reward in rewards]
        if min(rewards) == max(rewards):
            return [0.0] * len(rewards)
        if not self._options.divide_by_std:
            return centred
        spread = statistics.pstdev(rewards)
        return [value / spread for value in centred]
