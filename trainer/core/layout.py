"""How samples of different lengths lie in one flat row of tokens.

Knows lengths, shared beginnings and the index arithmetic that takes flat tokens to padded attention rows and back. Refuses to
know weights, adapters and losses. Nothing is padded outside attention, and no sample can see another's answer.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

WIDTH_STEP = 32
"""Attention rows are as wide as the row's length rounded up to this. The width depends on the row alone, so a row's attention is
computed in the same shape whoever shares its pack."""

SHARED_MIN = 16
"""A common beginning shorter than this is not worth a row with a mask of its own."""

PRODUCTS_PER_TOKEN = 1024
"""What one token's products with the weights cost, in tokens attended to: about 400 for a model of hidden size 64, 3,000 for one
of 135 million parameters. Decides only where sharing stops paying."""


@dataclass(frozen=True)
class AttentionBlock:
    """Rows that attend at one width. `gather` holds rows × width flat token indices, row by row; a short row repeats its own last
    token, which the causal mask hides from every real one."""

    gather: Tensor
    rows: int
    width: int
    positions: Tensor | None = None
    """[rows, width] where samples share their beginning; None: a column is a position."""
    visible: Tensor | None = None
    """[rows, 1, width, width], true where a query (third) sees a key (last); None: whatever is not later."""
    filler: Tensor | None = None
    """Places in rows × width that only fill their row up; None where every row is full."""

    def to(self, device: torch.device) -> "AttentionBlock":
        def moved(index: Tensor | None) -> Tensor | None:
            return None if index is None else index.to(device)

        return replace(
            self,
            gather=self.gather.to(device),
            positions=moved(self.positions),
            visible=moved(self.visible),
            filler=moved(self.filler),
        )


@dataclass(frozen=True)
class Layout:
    """`restore_T` finds each flat token in the concatenated outputs of the blocks."""

    token_ids_T: Tensor
    blocks: tuple[AttentionBlock, ...]
    restore_T: Tensor
    group_rows: tuple[int, ...]
    """Flat tokens of each adapter, in the order of the pack's adapters."""
    sample_rows: tuple[np.ndarray, ...]
    """Per sample, the flat index of each of its tokens; samples that share a beginning name the same ones."""

    def to(self, device: torch.device) -> "Layout":
        """The same with its tensors on a device."""
        if self.token_ids_T.device == device:
            return self
        blocks = tuple(block.to(device) for block in self.blocks)
        return replace(self, token_ids_T=self.token_ids_T.to(device), blocks=blocks, restore_T=self.restore_T.to(device))


@dataclass
class _Row:
    """Samples in one attention row: their first `prefix` tokens once, then what each adds."""

    samples: list[np.ndarray]
    prefix: int

    @property
    def length(self) -> int:
        return self.prefix + sum(len(sample) - self.prefix for sample in self.samples)

    def tokens(self) -> np.ndarray:
        return np.concatenate([self.samples[0][: self.prefix], *(sample[self.prefix :] for sample in self.samples)])

    def places(self) -> list[np.ndarray]:
        """Where in the row each sample's tokens lie."""
        ends = self.prefix + np.cumsum([0, *(len(sample) - self.prefix for sample in self.samples)])
        return [np.concatenate([np.arange(self.prefix), np.arange(start, end)]) for start, end in pairwise(ends)]

    def positions(self, width: int) -> np.ndarray:
        """[width]: the place of each column's token in its own sample. Columns behind the row's end say 0."""
        found = np.zeros(width, dtype=np.int64)
        for places in self.places():
            found[places] = np.arange(len(places))
        return found

    def visible(self, width: int) -> np.ndarray:
        """[width, width]: a token sees the shared beginning and its own sample, as far as they are not later."""
        owner = np.full(width, len(self.samples))
        for index, places in enumerate(self.places()):
            owner[places[self.prefix :]] = index
        own = owner[:, None] == owner[None, :]
        own[:, : self.prefix] = True
        return np.tril(own)


def width_of(length: int) -> int:
    return -(-length // WIDTH_STEP) * WIDTH_STEP


def lay_out(samples: Sequence[np.ndarray], group_rows: Sequence[int]) -> Layout:
    """Flatten samples (1-D int64 arrays of token ids) that are already sorted by adapter; `group_rows` says how many of their
    tokens belong to each. Neighbours of one adapter that begin alike are computed once as far as they do."""
    ends = np.cumsum([len(sample) for sample in samples]).searchsorted(np.cumsum(group_rows)) + 1
    groups = [_rows(samples[start:end]) for start, end in pairwise([0, *ends.tolist()])]
    rows = [row for group in groups for row in group]
    starts = np.cumsum([0] + [row.length for row in rows[:-1]])
    blocks, restore = _blocks(rows, starts)
    return Layout(
        token_ids_T=torch.from_numpy(np.concatenate([row.tokens() for row in rows])),
        blocks=blocks,
        restore_T=torch.from_numpy(restore),
        group_rows=tuple(sum(row.length for row in group) for group in groups),
        sample_rows=tuple(start + places for row, start in zip(rows, starts, strict=True) for places in row.places()),
    )


def _rows(samples: Sequence[np.ndarray]) -> list[_Row]:
    """Each sample joins the row before it where that is cheaper than a row of its own."""
    rows: list[_Row] = []
    for sample in samples:
        joined = _joined(rows[-1], sample) if rows else None
        if joined is None:
            rows.append(_Row([sample], prefix=len(sample)))
        else:
            rows[-1] = joined
    return rows


def _joined(row: _Row, sample: np.ndarray) -> _Row | None:
    prefix = _common(row.samples[0][: row.prefix], sample)
    joined = _Row([*row.samples, sample], prefix)
    worth_it = prefix >= SHARED_MIN and _cost(joined.length) < _cost(row.length) + _cost(len(sample))
    return joined if worth_it else None


def _common(left: np.ndarray, right: np.ndarray) -> int:
    """Length of the common beginning."""
    length = min(len(left), len(right))
    differing = np.flatnonzero(left[:length] != right[:length])
    return int(differing[0]) if len(differing) else length


def _cost(length: int) -> int:
    return length * (PRODUCTS_PER_TOKEN + length)


def _blocks(rows: Sequence[_Row], starts: np.ndarray) -> tuple[tuple[AttentionBlock, ...], np.ndarray]:
    """The rows by width, those that share apart, and where each flat token lies in the outputs of the blocks."""
    alike: dict[tuple[int, bool], list[int]] = defaultdict(list)
    for index, row in enumerate(rows):
        alike[width_of(row.length), len(row.samples) > 1].append(index)
    restore = np.empty(sum(row.length for row in rows), dtype=np.int64)
    blocks, offset = [], 0
    for (width, shares), members in sorted(alike.items()):
        gather = np.stack([starts[index] + np.minimum(np.arange(width), rows[index].length - 1) for index in members])
        real = np.arange(width) < np.array([[rows[index].length] for index in members])
        for place, index in enumerate(members):
            length = rows[index].length
            restore[starts[index] : starts[index] + length] = offset + place * width + np.arange(length)
        blocks.append(
            AttentionBlock(
                gather=torch.from_numpy(gather.reshape(-1)),
                rows=len(members),
                width=width,
                positions=torch.from_numpy(np.stack([rows[i].positions(width) for i in members])) if shares else None,
                visible=torch.from_numpy(np.stack([rows[i].visible(width)[None] for i in members])) if shares else None,
                filler=None if real.all() else torch.from_numpy(np.flatnonzero(~real)),
            )
        )
        offset += gather.size
    return tuple(blocks), restore
