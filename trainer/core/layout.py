"""How samples of different lengths lie in one flat row of tokens.

Knows lengths and the index arithmetic that takes flat tokens to padded attention blocks and back. Refuses to know
weights, adapters and losses. Nothing is padded outside attention, and no sample can see another: each is a row of its own.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

WIDTH_STEP = 32
"""Attention rows are as wide as the sample's length rounded up to this. The width depends on the sample alone, so a sample's
attention is computed in the same shape whoever shares its pack."""


@dataclass(frozen=True)
class AttentionBlock:
    """Samples that attend at one width. `gather` holds rows × width flat token indices, row by row; a short row repeats its
    own last token, which the causal mask hides from every real one."""

    gather: Tensor
    rows: int
    width: int


@dataclass(frozen=True)
class Layout:
    """`restore_T` finds each flat token in the concatenated outputs of the blocks."""

    token_ids_T: Tensor
    blocks: tuple[AttentionBlock, ...]
    restore_T: Tensor
    group_rows: tuple[int, ...]
    """Tokens of each adapter, in the order of the pack's adapters."""


def width_of(length: int) -> int:
    return -(-length // WIDTH_STEP) * WIDTH_STEP


def lay_out(samples: Sequence[np.ndarray], group_rows: Sequence[int]) -> Layout:
    """Flatten samples (1-D int64 arrays of token ids) that are already sorted by adapter."""
    lengths = [len(sample) for sample in samples]
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int64)
    by_width: dict[int, list[int]] = defaultdict(list)
    for index, length in enumerate(lengths):
        by_width[width_of(length)].append(index)
    restore = np.empty(sum(lengths), dtype=np.int64)
    blocks, offset = [], 0
    for width, members in sorted(by_width.items()):
        gather = np.empty((len(members), width), dtype=np.int64)
        for row, index in enumerate(members):
            start, length = starts[index], lengths[index]
            gather[row] = start + np.minimum(np.arange(width), length - 1)
            restore[start : start + length] = offset + row * width + np.arange(length)
        blocks.append(AttentionBlock(torch.from_numpy(gather.reshape(-1)), len(members), width))
        offset += gather.size
    return Layout(
        token_ids_T=torch.from_numpy(np.concatenate(samples)),
        blocks=tuple(blocks),
        restore_T=torch.from_numpy(restore),
        group_rows=tuple(group_rows),
    )
