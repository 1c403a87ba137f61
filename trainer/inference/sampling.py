"""From logits to tokens for a whole batch at once. Knows distributions; refuses to know sequences and stop rules.

Randomness: one uniform number per row from a counter stream of the request's own seed, turned into a token by inverting the
cumulative distribution. A row's tokens therefore depend neither on its neighbours in the batch nor on the batch's size.
Suffixes: _B row, _V vocabulary, _K most likely tokens.
"""

import secrets
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Seeds = npt.NDArray[np.uint64]
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class SamplingRows:
    """Sampling parameters of the rows of a step. A temperature of 0 means greedy."""

    temperature_B: Tensor
    uniform_B: Tensor
    """fp64 in [0, 1)"""
    truncated: Tensor | None
    """Indices of the rows that cut their distribution, or None: then the sort is skipped altogether."""
    top_p_B: Tensor
    top_k_B: Tensor
    min_p_B: Tensor
    top_logprobs: int


@dataclass(frozen=True, slots=True)
class Sampled:
    """`logprobs_B` is taken from the distribution at the sampling temperature, before any cut: what the trainer recomputes. For
    greedy rows it is that of temperature 1. Not finite where a row's logits are not."""

    token_ids_B: Tensor
    logprobs_B: Tensor
    top_ids_BK: Tensor | None
    top_logprobs_BK: Tensor | None


def sample(logits_BV: Tensor, rows: SamplingRows) -> Sampled:
    greedy_B = rows.temperature_B == 0
    logprobs_BV = tempered_logprobs(logits_BV, rows.temperature_B)
    probs_BV = logprobs_BV.exp()
    if rows.truncated is not None:
        cut = rows.truncated
        probs_BV[cut] = truncate(probs_BV[cut], top_p_B=rows.top_p_B[cut], top_k_B=rows.top_k_B[cut], min_p_B=rows.min_p_B[cut])
    token_ids_B = torch.where(greedy_B, logits_BV.argmax(dim=-1), _invert(probs_BV, rows.uniform_B))
    top = logprobs_BV.topk(rows.top_logprobs, dim=-1) if rows.top_logprobs else None
    return Sampled(
        token_ids_B=token_ids_B,
        logprobs_B=logprobs_BV.gather(1, token_ids_B.unsqueeze(1)).squeeze(1),
        top_ids_BK=top.indices if top else None,
        top_logprobs_BK=top.values if top else None,
    )


def tempered_logprobs(logits_BV: Tensor, temperature_B: Tensor) -> Tensor:
    """log-softmax of logits / temperature in fp32; temperature 0 counts as 1."""
    divisor_B = torch.where(temperature_B == 0, 1.0, temperature_B)
    return torch.log_softmax(logits_BV / divisor_B.unsqueeze(1), dim=-1)


def truncate(probs_BV: Tensor, *, top_p_B: Tensor, top_k_B: Tensor, min_p_B: Tensor) -> Tensor:
    """Set to zero what min_p, top_k (≤ 0: off) and then top_p cut away. The most likely token always stays."""
    sorted_BV, order_BV = probs_BV.sort(dim=-1, descending=True)
    rank_V = torch.arange(probs_BV.shape[1], device=probs_BV.device)
    keep_BV = sorted_BV >= min_p_B.unsqueeze(1) * sorted_BV[:, :1]
    keep_BV &= (rank_V < top_k_B.unsqueeze(1)) | (top_k_B.unsqueeze(1) <= 0)
    kept_BV = sorted_BV * keep_BV
    before_BV = kept_BV.cumsum(dim=-1) - kept_BV
    keep_BV &= before_BV < top_p_B.unsqueeze(1) * kept_BV.sum(dim=-1, keepdim=True)
    keep_BV[:, 0] = True
    return torch.zeros_like(probs_BV).scatter_(1, order_BV, sorted_BV * keep_BV)


def _invert(probs_BV: Tensor, uniform_B: Tensor) -> Tensor:
    """The first token whose cumulative probability exceeds u. fp64, so that u · total stays below total and a token of
    probability zero is never met."""
    cumulative_BV = probs_BV.cumsum(dim=-1, dtype=torch.float64)
    wanted_B = uniform_B * cumulative_BV[:, -1]
    found_B = torch.searchsorted(cumulative_BV, wanted_B.unsqueeze(1), right=True).squeeze(1)
    # A row of NaN finds nothing; its log-probability says so, and the index must still be one.
    return found_B.clamp(max=probs_BV.shape[1] - 1)


def stream_seed(seed: int | None) -> np.uint64:
    """Start of a request's random stream: from its seed, else from the operating system."""
    value = secrets.randbits(64) if seed is None else seed % 2**64
    return _mix(np.array([value], np.uint64))[0]


def uniforms(seed_B: Seeds, counter_B: Seeds) -> npt.NDArray[np.float64]:
    """Number `counter` of each stream, in [0, 1) with 52 bits."""
    mixed_B = _mix(seed_B + (counter_B + np.uint64(1)) * _GOLDEN)
    return (mixed_B >> np.uint64(12)).astype(np.float64) * 2.0**-52


def _mix(values: Seeds) -> Seeds:
    """The finalizer of splitmix64 (Steele, Lea, Flood 2014): every input bit moves every output bit. Wraps by design."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))
