"""MaxRL: a rollout's lead over the mean of its group, as a share of that mean. What is rarely solved pulls hardest.

Source: docs/algorithms.md, "Algorithms". Made for rewards that are not negative: a group whose mean is not above 0 has nothing
to take a share of, and teaches nothing.
Knows rewards of one group. Refuses to know who gave them, and every other group.
"""

import statistics
from collections.abc import Sequence

from trainer.algorithms.group_relative import GroupRelative
from trainer.algorithms.grpo import centred
from trainer.contracts.algorithms import MaxRlOptions


class MaxRl(GroupRelative[MaxRlOptions]):
    id = "max_rl"

    def advantages(self, rewards: Sequence[float], completion_tokens: Sequence[int]) -> list[float]:
        """Sum to zero; one success among G rollouts gets G − 1, each failure −1."""
        mean = statistics.fmean(rewards) if rewards else 0.0
        if mean <= 0:
            return [0.0] * len(rewards)
        return [lead / mean for lead in centred(rewards, divide_by_std=False)]
