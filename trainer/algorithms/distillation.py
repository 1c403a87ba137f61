"""Algorithms that pull the policy towards somebody else's view of its own tokens: `ref_kl` on every sampled token.

Knows how scores come back into alignment when the reference reads something before the rollout. Refuses to know who the
reference is; what it reads is each algorithm's own file.
"""

import asyncio
from abc import abstractmethod
from collections.abc import Sequence

from trainer.algorithms.protocol import (
    Algorithm,
    GroupView,
    OptionsT,
    Reference,
    RolloutSignals,
    Signals,
    Stream,
    on_sampled,
)


class Distillation(Algorithm[OptionsT]):
    needs_reference = True

    @abstractmethod
    def prefix(self, group: GroupView) -> Sequence[int]:
        """Token ids that the reference reads before each stream and the policy did not. Raises GroupUnfit."""

    async def score(self, group: GroupView) -> list[RolloutSignals]:
        assert self._reference is not None, f"{self.id} was made without a reference"
        prefix = self.prefix(group)
        streams = [stream for rollout in group.rollouts for seat in rollout.seats for stream in seat.streams]
        pulls = iter(await asyncio.gather(*(_pull(self._reference, prefix, stream, group.policy) for stream in streams)))
        return [
            RolloutSignals(None, tuple(tuple(next(pulls) for _ in seat.streams) for seat in rollout.seats))
            for rollout in group.rollouts
        ]


async def _pull(reference: Reference, prefix: Sequence[int], stream: Stream, policy: str) -> Signals:
    scores = await reference.logprobs([*prefix, *stream.token_ids], policy=policy)
    own = scores[len(prefix) :]
    return Signals(
        ref_kl_weights=on_sampled(stream, 1.0),
        ref_logprobs=[score if sampled else 0.0 for score, sampled in zip(own, stream.mask, strict=True)],
    )
