"""How far a step moves the policy, measured on the first tokens of its own batch, before and after it.

`mismatch_kl` cannot tell: it is nothing where rollouts are fresh, and of stale ones it mixes the steps that lie between. Costs a
forward pass over a few samples. Refuses to know gradients and what follows from the figure.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from trainer.core.adapter_stack import AdapterStack
from trainer.core.adapters import Adapter
from trainer.core.layout import lay_out
from trainer.core.llama import Llama
from trainer.core.losses import LOG_RATIO_MAX
from trainer.core.streams import BatchStreams, SampleStreams
from trainer.core.token_scores import TokenScores, chunks

PROBE_TOKENS = 256
"""So many trained tokens are enough; the last sample counts whole."""


class Probe:
    """Some samples of a batch, and what their trained tokens' log-probabilities were as the step trained on them."""

    def __init__(self, samples: Sequence[SampleStreams]) -> None:
        self.samples = samples
        self.tokens = sum(len(sample.trained_P) for sample in samples)
        self.restart()

    @classmethod
    def of(cls, streams: BatchStreams) -> "Probe | None":
        """None where nothing was sampled by a policy (`ce` alone)."""
        if streams.denominators.rl + streams.denominators.ref_kl == 0:
            return None
        ends = np.cumsum([len(sample.trained_P) for sample in streams.samples])
        return cls(streams.samples[: int(ends.searchsorted(PROBE_TOKENS)) + 1])

    def restart(self) -> None:
        self._before: list[Tensor] = []
        self._missing = self.tokens

    def note(self, logprob_P: Tensor) -> None:
        """The next of the batch's trained tokens, in its order. Those beyond the probe are let go."""
        if self._missing:
            self._before.append(logprob_P[: self._missing].clone())
            self._missing -= len(self._before[-1])

    @torch.no_grad()
    def change(self, model: Llama, adapter: Adapter) -> float:
        """Mean of r − 1 − log r over the tokens, r as in `Ratio`, of a token's probability after the step over that before it."""
        after_P = _logprobs(model, adapter, self.samples)
        log_ratio_P = (after_P - torch.cat(self._before)).double().clamp(-LOG_RATIO_MAX, LOG_RATIO_MAX)
        return float((log_ratio_P.expm1() - log_ratio_P).mean())


def _logprobs(model: Llama, adapter: Adapter, samples: Sequence[SampleStreams]) -> Tensor:
    """Of the samples' trained tokens [P], at their temperatures."""
    layout = lay_out([sample.token_ids_T for sample in samples], [sum(sample.length for sample in samples)]).to(model.device)
    stack = AdapterStack([adapter], model.targets, layout.group_rows, dtype=model.dtype)
    hidden_TH = model.hidden(layout, stack)
    normed_PH = model.last_norm(hidden_TH.index_select(0, layout.rows_before([sample.trained_P for sample in samples])))
    targets_P = torch.from_numpy(np.concatenate([sample.token_ids_T[sample.trained_P] for sample in samples])).to(model.device)
    temperatures_P = torch.cat([sample.signals.temperatures for sample in samples]).to(model.device)
    scored = [
        TokenScores.of(normed_PH[chunk], model.head_VH, targets_P[chunk], temperatures_P[chunk]).logprob_C.cpu()
        for chunk in chunks(len(targets_P), model.shape.vocabulary_size)
    ]
    return torch.cat(scored)
