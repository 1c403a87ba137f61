"""One pack: samples of several runs in one forward and one backward pass.

Knows how rows are sorted by run, where log-probabilities are needed, and that each run's loss reads its own rows alone.
Refuses to know queues, files and optimizers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from trainer.contracts.training import LossSpec
from trainer.core.adapters import Adapter, AdapterStack
from trainer.core.layout import Layout, lay_out
from trainer.core.llama import Llama
from trainer.core.losses import TALLY, run_loss
from trainer.core.streams import Denominators, SampleStreams, Signals


@dataclass
class Accumulation:
    """A step in progress: gradients add up in the adapter, sums in `tally`."""

    adapter: Adapter
    loss: LossSpec
    denominators: Denominators
    tally: Tensor = field(default_factory=lambda: torch.zeros(len(TALLY), dtype=torch.float64))

    def restart(self) -> None:
        self.adapter.grads_P.zero_()
        self.tally.zero_()


@dataclass(frozen=True)
class PackPart:
    """The samples of one run in a pack."""

    accumulation: Accumulation
    samples: Sequence[SampleStreams]

    @property
    def tokens(self) -> int:
        return sum(sample.length for sample in self.samples)


def train_pack(model: Llama, parts: Sequence[PackPart]) -> None:
    """Add the gradient and the tally of every part to its accumulation. Parts of several runs share every product with the
    base weights; a part's gradient depends on its own rows alone."""
    samples = [sample for part in parts for sample in part.samples]
    layout = lay_out([sample.token_ids_T for sample in samples], [part.tokens for part in parts])
    adapters = AdapterStack([part.accumulation.adapter for part in parts], model.targets, layout.group_rows)
    hidden_TH = model.hidden(layout, adapters)
    signals = Signals.concatenated([sample.signals for sample in samples])
    logprob_P, entropy_P = _logprobs(model, hidden_TH, layout, samples, signals.temperatures)
    losses = _run_losses(parts, logprob_P, entropy_P)
    # One scalar for one backward pass; the sum couples nothing, since no row belongs to two parts.
    torch.autograd.backward(torch.stack(losses).sum())


def _logprobs(
    model: Llama, hidden_TH: Tensor, layout: Layout, samples: Sequence[SampleStreams], temperatures_P: Tensor
) -> tuple[Tensor, Tensor]:
    """Log-probability [P] of each trained token at its sampler's temperature, and the entropy [P] there (no gradient)."""
    before = np.concatenate([rows[sample.trained_P - 1] for rows, sample in zip(layout.sample_rows, samples, strict=True)])
    targets = np.concatenate([sample.token_ids_T[sample.trained_P] for sample in samples])
    logits_PV = model.logits(hidden_TH.index_select(0, torch.from_numpy(before)))
    logprobs_PV = (logits_PV / temperatures_P[:, None]).log_softmax(dim=-1)
    with torch.no_grad():
        entropy_P = -(logprobs_PV.exp() * logprobs_PV).sum(dim=-1)
    return logprobs_PV.gather(1, torch.from_numpy(targets)[:, None])[:, 0], entropy_P


def _run_losses(parts: Sequence[PackPart], logprob_P: Tensor, entropy_P: Tensor) -> list[Tensor]:
    losses, offset = [], 0
    for part in parts:
        signals = Signals.concatenated([sample.signals for sample in part.samples])
        own = slice(offset, offset + len(signals.temperatures))
        offset = own.stop
        into = part.accumulation
        loss, tally = run_loss(logprob_P[own], entropy_P[own], signals, into.denominators, into.loss)
        into.tally += tally
        losses.append(loss)
    return losses
