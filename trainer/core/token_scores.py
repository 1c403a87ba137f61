"""Log-probabilities of some tokens under the model's head, a chunk at a time, with the backward pass written out.

Knows rows of normed hidden states, the head's weights and temperatures. Refuses to know losses, runs and how hidden states came
about. The table of tokens × vocabulary never exists: only that of one chunk does, from its forward to its backward pass.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

CHUNK_ELEMENTS = 2**19
"""Of tokens × vocabulary in a chunk: small enough to stay in a CPU's cache, large enough to keep a head's product busy."""

CHUNK_TOKENS_MIN = 128
"""The head is read once per chunk, whatever the vocabulary."""


def chunks(tokens: int, vocabulary_size: int) -> Iterator[slice]:
    size = max(CHUNK_TOKENS_MIN, CHUNK_ELEMENTS // vocabulary_size)
    for start in range(0, tokens, size):
        yield slice(start, min(start + size, tokens))


@dataclass(frozen=True)
class TokenScores:
    """Of C tokens: log-probability and entropy at their temperatures, in float32 at least. Without autograd."""

    logprob_C: Tensor
    entropy_C: Tensor
    _head_VH: Tensor
    _targets_C1: Tensor
    _temperatures_C1: Tensor
    _probabilities_CV: Tensor

    @classmethod
    @torch.no_grad()
    def of(cls, normed_CH: Tensor, head_VH: Tensor, targets_C: Tensor, temperatures_C: Tensor) -> "TokenScores":
        logits_CV = functional.linear(normed_CH, head_VH)
        if logits_CV.dtype == torch.bfloat16:
            logits_CV = logits_CV.float()
        logprobs_CV = logits_CV.div_(temperatures_C[:, None]).log_softmax(dim=-1)
        probabilities_CV = torch.exp(logprobs_CV, out=logits_CV)
        targets_C1 = targets_C[:, None]
        return cls(
            logprobs_CV.gather(1, targets_C1)[:, 0],
            -torch.linalg.vecdot(probabilities_CV, logprobs_CV),
            head_VH,
            targets_C1,
            temperatures_C[:, None],
            probabilities_CV,
        )

    @torch.no_grad()
    def backward(self, grad_C: Tensor) -> Tensor:
        """From the loss's gradient by log-probability to that by normed hidden states [C, H]. Once only: it uses the
        probabilities up."""
        scaled_C1 = grad_C[:, None] / self._temperatures_C1
        grad_CV = self._probabilities_CV.mul_(-scaled_C1).scatter_add_(1, self._targets_C1, scaled_C1)
        return grad_CV.to(self._head_VH.dtype) @ self._head_VH
