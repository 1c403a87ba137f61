"""One pack: samples of several runs in one forward and one backward pass.

Knows how rows are sorted by run, where log-probabilities are needed, and that each run's loss reads its own rows alone.
Refuses to know queues, files and optimizers.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from trainer.contracts.training import LossSpec
from trainer.core.adapter_stack import AdapterStack
from trainer.core.adapters import Adapter
from trainer.core.layout import lay_out
from trainer.core.llama import Llama
from trainer.core.losses import TALLY, run_loss
from trainer.core.probe import Probe
from trainer.core.streams import Denominators, SampleStreams, Signals
from trainer.core.token_scores import TokenScores, chunks


@dataclass
class Accumulation:
    """A step in progress: gradients add up in the adapter, sums in `tally`, what the first tokens were worth in `probe`."""

    adapter: Adapter
    loss: LossSpec
    denominators: Denominators
    probe: Probe | None = None
    tally: Tensor = field(default_factory=lambda: torch.zeros(len(TALLY), dtype=torch.float64))

    def restart(self) -> None:
        self.adapter.drop_gradient()
        self.tally.zero_()
        if self.probe is not None:
            self.probe.restart()


@dataclass(frozen=True)
class PackPart:
    """The samples of one run in a pack."""

    accumulation: Accumulation
    samples: Sequence[SampleStreams]

    @property
    def tokens(self) -> int:
        return sum(sample.length for sample in self.samples)


def train_pack(model: Llama, parts: Sequence[PackPart], *, recompute: bool = False) -> None:
    """Add the gradient and the tally of every part to its accumulation. Parts of several runs share every product with the
    base weights; a part's gradient depends on its own rows alone. `recompute`: see `Llama.hidden`."""
    samples = [sample for part in parts for sample in part.samples]
    layout = lay_out([sample.token_ids_T for sample in samples], [part.tokens for part in parts]).to(model.device)
    owners = [part.accumulation.adapter for part in parts]
    adapters = AdapterStack(owners, model.targets, layout.group_rows, dtype=model.dtype)
    hidden_TH = model.hidden(layout, adapters, recompute=recompute)
    normed_PH = model.last_norm(hidden_TH.index_select(0, layout.rows_before([sample.trained_P for sample in samples])))
    # The sum over runs couples nothing: no row belongs to two of them.
    torch.autograd.backward(normed_PH, _loss_gradient(model, normed_PH.detach(), parts))
    adapters.deliver()


def _loss_gradient(model: Llama, normed_PH: Tensor, parts: Sequence[PackPart]) -> Tensor:
    """Of the parts' losses by the normed hidden states of their trained tokens [P, H]; adds to the tallies."""
    samples = [sample for part in parts for sample in part.samples]
    targets = np.concatenate([sample.token_ids_T[sample.trained_P] for sample in samples])
    signals = Signals.concatenated([sample.signals for sample in samples])
    targets_P, temperatures_P = torch.from_numpy(targets).to(model.device), signals.temperatures.to(model.device)
    ends = np.cumsum([0, *(sum(len(sample.trained_P) for sample in part.samples) for part in parts)]).tolist()
    grad_PH = torch.empty_like(normed_PH)
    for chunk in chunks(len(targets), model.shape.vocabulary_size):
        scores = TokenScores.of(normed_PH[chunk], model.head_VH, targets_P[chunk], temperatures_P[chunk])
        # A few numbers a token: losses are computed where the signals lie, whatever the model's device is.
        logprob_C, entropy_C = scores.logprob_C.cpu(), scores.entropy_C.cpu()
        grad_C = torch.empty_like(logprob_C)
        for part, (start, end) in zip(parts, pairwise(ends), strict=True):
            own = slice(max(start, chunk.start), min(end, chunk.stop))
            if own.start < own.stop:
                here = slice(own.start - chunk.start, own.stop - chunk.start)
                grad_C[here] = _run_gradient(part, logprob_C[here], entropy_C[here], signals[own])
        grad_PH[chunk] = scores.backward(grad_C.to(model.device))
    return grad_PH


def _run_gradient(part: PackPart, logprob_P: Tensor, entropy_P: Tensor, signals: Signals) -> Tensor:
    """Of one run's loss by its tokens' log-probabilities. The loss is a sum over tokens: any share of them may come alone."""
    into, leaf_P = part.accumulation, logprob_P.detach().requires_grad_()
    with torch.enable_grad():
        loss, tally = run_loss(leaf_P, entropy_P, signals, into.denominators, into.loss)
    into.tally += tally
    if into.probe is not None:
        into.probe.note(logprob_P)
    (grad_P,) = torch.autograd.grad(loss, leaf_P)
    return grad_P
