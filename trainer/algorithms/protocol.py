"""What an algorithm is to the orchestrator.

Knows the loss component that the signal feeds and the shape of a group's scores. Refuses to know where rewards come from.
"""

from collections.abc import Sequence
from typing import Literal, Protocol


class UnknownAlgorithm(ValueError):
    """An option that the algorithm does not have; the text names it."""


class Algorithm(Protocol):
    """`component` is the weight stream that a rollout's sampled tokens enter; `valid_min` how many valid rollouts a group
    needs for its scores to mean anything."""

    id: str
    component: Literal["rl", "ce", "ref_kl"]
    valid_min: int

    def advantages(self, rewards: Sequence[float]) -> list[float]:
        """One advantage per valid rollout of a group, in order. Failed rollouts are not in it: they are no rewards of 0."""
        ...
