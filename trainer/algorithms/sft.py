"""SFT: what somebody else said is what the policy should have said: `ce` on every token that the generator sampled.

Source: docs/algorithms.md, "sft". Refuses to know who the generator is; rewards choose rollouts where `min_reward` is given.
"""

from trainer.algorithms.protocol import Algorithm, GroupView, RolloutSignals, Signals, Stream, on_sampled, per_stream
from trainer.contracts.algorithms import SftOptions


class Sft(Algorithm[SftOptions]):
    id = "sft"

    async def score(self, group: GroupView) -> list[RolloutSignals]:
        return [per_stream(rollout, None, _imitate if self._is_good(rollout.reward) else _leave) for rollout in group.rollouts]

    def _is_good(self, reward: float) -> bool:
        return self._options.min_reward is None or reward >= self._options.min_reward


def _imitate(stream: Stream) -> Signals:
    return Signals(ce_weights=on_sampled(stream, 1.0))


def _leave(stream: Stream) -> Signals:
    return Signals()
