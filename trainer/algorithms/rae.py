"""RAE, role-conditioned advantage estimation: a seat is as good as its reward exceeds what its agent usually gets.

Source: docs/algorithms.md, "Algorithms". For several agents with opposed interests, whose rewards have no common mean to be
compared with, and for groups of one. Each agent's baseline starts at 0 and outlives a restart of the run.
Knows rewards by agent and the baselines so far. Refuses to know where those are kept.
"""

from collections.abc import Mapping
from statistics import fmean

from trainer.algorithms.protocol import Algorithm, GroupView, Reference, RolloutSignals, RolloutView, policy_gradient
from trainer.contracts.algorithms import RaeOptions

AGENTS_MAX = 256
"""Baselines of one environment. Agents are named by tenant code: those beyond share one, so that no state grows without end."""
OTHERS = ""


class Rae(Algorithm[RaeOptions]):
    id = "rae"

    def __init__(self, options: RaeOptions, reference: Reference | None = None) -> None:
        super().__init__(options, reference)
        self._baselines: dict[str, float] = {}

    async def score(self, group: GroupView) -> list[RolloutSignals]:
        """Seat after seat in the order of dispatch, so that the order in which rollouts come home changes nothing."""
        return [self._rollout(rollout) for rollout in group.rollouts]

    def advantage(self, agent: str, reward: float) -> float:
        """Compare with the baseline as it was, then move it: a reward is never compared with itself."""
        key = agent if agent in self._baselines or len(self._baselines) < AGENTS_MAX else OTHERS
        baseline, decay = self._baselines.get(key, 0.0), self._options.decay
        self._baselines[key] = decay * baseline + (1 - decay) * reward
        return reward - baseline

    def state(self) -> dict[str, float]:
        """Baseline by agent."""
        return dict(self._baselines)

    def restore(self, state: Mapping[str, float]) -> None:
        self._baselines = dict(state)

    def _rollout(self, rollout: RolloutView) -> RolloutSignals:
        advantages = [self.advantage(seat.agent, seat.reward) for seat in rollout.seats]
        seats = tuple(
            tuple(policy_gradient(stream, advantage) for stream in seat.streams)
            for seat, advantage in zip(rollout.seats, advantages, strict=True)
        )
        return RolloutSignals(fmean(advantages) if advantages else None, seats)
