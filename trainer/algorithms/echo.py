"""ECHO: GRPO on what the policy said, and beside it cross-entropy on what the environment answered.

Source: docs/algorithms.md, "Algorithms". A policy that foretells the answers of its tools and partners has a model of its world,
and the answers are tokens that are there anyway. The first prompt answers nothing and is left alone. What a chat template puts
around an answer counts as part of it: it cannot be told apart in a token stream, and costs little once it is known.
Knows which tokens lie behind the first reply. Refuses to know tools, partners and what an answer means.
"""

from dataclasses import replace

from trainer.algorithms.grpo import GrpoBase
from trainer.algorithms.protocol import Signals, Stream, policy_gradient
from trainer.contracts.algorithms import EchoOptions


class Echo(GrpoBase[EchoOptions]):
    id = "echo"

    def _signals(self, stream: Stream, *, advantage: float) -> Signals:
        return replace(policy_gradient(stream, advantage), ce_weights=on_observed(stream, self._options.alpha))


def on_observed(stream: Stream, value: float) -> list[float]:
    """[T]: `value` on what was not sampled behind the first sampled token, 0.0 elsewhere."""
    first = next((index for index, sampled in enumerate(stream.mask) if sampled), len(stream.mask))
    return [value if index > first and not sampled else 0.0 for index, sampled in enumerate(stream.mask)]
