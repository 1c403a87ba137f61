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
    token, which is later than every real one and so seen by none."""

    gather: Tensor
    rows: int
    width: int
    filler: Tensor | None
    """Places in rows × width that only fill their row up; None where every row is full."""
    beginning: Tensor | None = None
    """Flat token indices before each row, where the rows are what samples add to a beginning that they share."""
    visible: Tensor | None = None
    """[width, beginning + width], true where a row's token (first) sees a token (last); None: whatever is not later."""

    @property
    def first(self) -> int:
        """The position of a row's first token in its sample."""
        return 0 if self.beginning is None else len(self.beginning)

    def to(self, device: torch.device) -> "AttentionBlock":
        names = ("gather", "filler", "beginning", "visible")
        moved = {name: index.to(device) for name in names if (index := getattr(self, name)) is not None}
        return replace(self, **moved)


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

    def rows_before(self, chosen: Sequence[np.ndarray]) -> Tensor:
        """Flat indices of the tokens just before the `chosen` ones of each sample: where their predictions stand."""
        before = [rows[tokens - 1] for rows, tokens in zip(self.sample_rows, chosen, strict=True)]
        return torch.from_numpy(np.concatenate(before)).to(self.token_ids_T.device)

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
    worth_it = prefix >= SHARED_MIN and _cost(joined) < _cost(row) + _cost(_Row([sample], len(sample)))
    return joined if worth_it else None


def _common(left: np.ndarray, right: np.ndarray) -> int:
    """Length of the common beginning."""
    length = min(len(left), len(right))
    differing = np.flatnonzero(left[:length] != right[:length])
    return int(differing[0]) if len(differing) else length


def _cost(row: _Row) -> int:
    """In tokens attended to."""
    added = [len(sample) - row.prefix for sample in row.samples]
    return row.length * PRODUCTS_PER_TOKEN + row.prefix**2 + sum(width * (row.prefix + width) for width in added)


@dataclass(frozen=True)
class _Span:
    """Flat tokens in a row."""

    start: int
    length: int


def _blocks(rows: Sequence[_Row], starts: np.ndarray) -> tuple[tuple[AttentionBlock, ...], np.ndarray]:
    """Whole samples and shared beginnings by width, then what samples add to each beginning; and where each flat token lies in
    the outputs of the blocks."""
    plain: dict[int, list[_Span]] = defaultdict(list)
    added: dict[tuple[int, int], list[_Span]] = defaultdict(list)
    for index, (row, start) in enumerate(zip(rows, starts.tolist(), strict=True)):
        plain[width_of(row.prefix)].append(_Span(start, row.prefix))
        begins = start + row.prefix
        for sample in row.samples:
            if (length := len(sample) - row.prefix) > 0:
                added[index, width_of(length)].append(_Span(begins, length))
                begins += length
    restore = np.empty(sum(row.length for row in rows), dtype=np.int64)
    blocks, offset = [], 0
    for width, spans in sorted(plain.items()):
        blocks.append(_block(spans, width, restore, offset))
        offset += len(spans) * width
    for (index, width), spans in sorted(added.items()):
        beginning = torch.arange(starts[index], starts[index] + rows[index].prefix)
        sees = torch.ones(width, rows[index].prefix + width, dtype=torch.bool).tril(rows[index].prefix)
        blocks.append(replace(_block(spans, width, restore, offset), beginning=beginning, visible=sees))
        offset += len(spans) * width
    return tuple(blocks), restore


def _block(spans: Sequence[_Span], width: int, restore: np.ndarray, offset: int) -> AttentionBlock:
    """The spans as rows of one width; writes into `restore` where their tokens lie, `offset` being the block's first place."""
    columns = np.arange(width)
    gather = np.stack([span.start + np.minimum(columns, span.length - 1) for span in spans])
    real = columns < np.array([[span.length] for span in spans])
    for place, span in enumerate(spans):
        restore[span.start : span.start + span.length] = offset + place * width + columns[: span.length]
    filler = None if real.all() else torch.from_numpy(np.flatnonzero(~real))
    return AttentionBlock(torch.from_numpy(gather.reshape(-1)), len(spans), width, filler)
