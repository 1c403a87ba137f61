"""LoRA arithmetic of a mixed batch: where an adapter's numbers lie in its flat buffer, and the grouped products of a step.

Knows ranks, slots and token ranges. Refuses to know names, files and requests. Rows come sorted by adapter, so that one grouped
matmul serves all adapters of a rank class; weights are never gathered per row, and base rows are not touched at all.
Suffixes: _S slot, _T token, _R rank.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from trainer.inference.lanes import Ints

RANK_CLASSES = (8, 16, 32, 64, 128, 256)
"""Adapters are padded to the next class; adapters of one class share a table and a matmul."""


def rank_class(rank: int) -> int:
    return next(size for size in RANK_CLASSES if rank <= size)


class Dimensions(Protocol):
    """What a layout needs to know about the base model."""

    @property
    def layers(self) -> int: ...
    @property
    def hidden(self) -> int: ...
    @property
    def intermediate(self) -> int: ...
    @property
    def q_width(self) -> int: ...
    @property
    def kv_width(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Target:
    """A fused projection: modules that share their input, and the output width of each."""

    name: str
    width_in: int
    modules: tuple[tuple[str, int], ...]

    @property
    def width_out(self) -> int:
        return sum(width for _, width in self.modules)


def targets_of(shape: Dimensions) -> tuple[Target, ...]:
    q, kv, wide, hidden = shape.q_width, shape.kv_width, shape.intermediate, shape.hidden
    return (
        Target("qkv", hidden, (("self_attn.q_proj", q), ("self_attn.k_proj", kv), ("self_attn.v_proj", kv))),
        Target("o", q, (("self_attn.o_proj", hidden),)),
        Target("gate_up", hidden, (("mlp.gate_proj", wide), ("mlp.up_proj", wide))),
        Target("down", wide, (("mlp.down_proj", hidden),)),
    )


class LoraLayout:
    """One adapter of a rank class as one flat buffer: per layer and target, A [in, n·R], then B [n·R, out].

    The n modules of a fused target stand side by side in A and on the diagonal blocks of B: two products instead of 2n, for
    n times the (small) bytes of B. The scale is folded into B.
    """

    def __init__(self, shape: Dimensions, rank: int):
        self.rank = rank
        self.layers = shape.layers
        self.targets = targets_of(shape)
        self._offsets: dict[tuple[int, str], int] = {}
        offset = 0
        for layer in range(shape.layers):
            for target in self.targets:
                self._offsets[layer, target.name] = offset
                offset += len(target.modules) * rank * (target.width_in + target.width_out)
        self.size = offset

    def pack(self, pairs: dict[tuple[int, str], tuple[Tensor, Tensor]], scale: float) -> Tensor:
        """(layer, module) → (A [r, in], B [out, r]) becomes the flat buffer. Modules without a pair stay zero."""
        flat = torch.zeros(self.size)
        for layer in range(self.layers):
            for target in self.targets:
                a, b = self.views(flat.unsqueeze(0), layer, target)
                column = 0
                for place, (module, width) in enumerate(target.modules):
                    if (pair := pairs.get((layer, module))) is not None:
                        rank, start = pair[0].shape[0], place * self.rank
                        a[0, :, start : start + rank] = pair[0].T
                        b[0, start : start + rank, column : column + width] = pair[1].T * scale
                    column += width
        return flat

    def views(self, flat_S: Tensor, layer: int, target: Target) -> tuple[Tensor, Tensor]:
        """A [S, in, n·R] and B [S, n·R, out] inside a table of flat buffers."""
        inner = len(target.modules) * self.rank
        start = self._offsets[layer, target.name]
        middle, end = start + target.width_in * inner, start + inner * (target.width_in + target.width_out)
        slots = flat_S.shape[0]
        return (
            flat_S[:, start:middle].view(slots, target.width_in, inner),
            flat_S[:, middle:end].view(slots, inner, target.width_out),
        )


@dataclass(frozen=True, slots=True, eq=False)
class AdapterWeights:
    """An adapter in RAM, ready to be copied into a slot. `digest` is that of the file it came from."""

    digest: str
    rank: int
    flat: Tensor

    @property
    def rank_class(self) -> int:
        return rank_class(self.rank)

    @property
    def size_bytes(self) -> int:
        return self.flat.numel() * self.flat.element_size()


class SlotTable:
    """The placed adapters of one rank class. A slot is overwritten only while no running sequence holds it."""

    def __init__(self, layout: LoraLayout, slots: int, *, device: torch.device, dtype: torch.dtype):
        self._flat_S = torch.zeros(slots, layout.size, device=device, dtype=dtype)
        self._digests: list[str | None] = [None] * slots
        self._holders = [0] * slots
        self.products = [
            {target.name: layout.views(self._flat_S, layer, target) for target in layout.targets}
            for layer in range(layout.layers)
        ]

    def place(self, adapter: AdapterWeights) -> int | None:
        """The slot that holds `adapter`, one holder more; None while every slot is held by others.

        The lowest free slot is taken, since a step's cost grows with the highest slot in use.
        """
        if adapter.digest in self._digests:
            slot = self._digests.index(adapter.digest)
        elif 0 in self._holders:
            slot = self._holders.index(0)
            self._flat_S[slot].copy_(adapter.flat)
            self._digests[slot] = adapter.digest
        else:
            return None
        self._holders[slot] += 1
        return slot

    def release(self, slot: int) -> None:
        assert self._holders[slot] > 0, "a slot is released once per holder"
        self._holders[slot] -= 1

    def digest_at(self, slot: int) -> str | None:
        return self._digests[slot]


@dataclass(frozen=True, slots=True)
class Segment:
    """Tokens [start, stop) of a step belong to adapters of one table; `ends_S` is each slot's last token, counted from start."""

    table: SlotTable
    start: int
    stop: int
    ends_S: Tensor
    slots: int
    only: int | None
    """The one slot in use, where there is one: a plain product then."""


class LoraSegments:
    """The LoRA part of one step."""

    def __init__(self, segments: Sequence[Segment]):
        self._segments = segments

    def add_delta(self, out_T: Tensor, x_T: Tensor, layer: int, target: str) -> None:
        """out += B·A·x for the tokens of every adapter, in place."""
        for segment in self._segments:
            a_S, b_S = segment.table.products[layer][target]
            x, out = x_T[segment.start : segment.stop], out_T[segment.start : segment.stop]
            if segment.only is not None:
                out.addmm_(x @ a_S[segment.only], b_S[segment.only])
                continue
            z = F.grouped_mm(x, a_S[: segment.slots], offs=segment.ends_S)
            out.add_(F.grouped_mm(z, b_S[: segment.slots], offs=segment.ends_S))


class AdapterSlots:
    """All slot tables of an engine, made when the first adapter of their rank class comes."""

    def __init__(self, shape: Dimensions, slots: int, *, device: torch.device, dtype: torch.dtype):
        self._slots = slots
        self._device = device
        self._new_table: Callable[[int], SlotTable] = lambda rank: SlotTable(
            LoraLayout(shape, rank), slots, device=device, dtype=dtype
        )
        self._tables: dict[int, SlotTable] = {}

    def place(self, adapter: AdapterWeights) -> int | None:
        """A key > 0 by which rows are sorted, or None while no slot is free. Give it to `release` when the sequence ends."""
        size = adapter.rank_class
        if size not in self._tables:
            self._tables[size] = self._new_table(size)
        slot = self._tables[size].place(adapter)
        return None if slot is None else RANK_CLASSES.index(size) * self._slots + slot + 1

    def release(self, key: int) -> None:
        table, slot = self._locate(key)
        table.release(slot)

    def digest_of(self, key: int) -> str | None:
        table, slot = self._locate(key)
        return table.digest_at(slot)

    def segments(self, keys_B: Ints, tokens_B: Ints) -> LoraSegments:
        """For rows with these keys (ascending; 0 is the base model) that have so many tokens each."""
        class_B, slot_B = np.divmod(keys_B - 1, self._slots)
        ends_B = np.cumsum(tokens_B)
        segments = []
        for index in np.unique(class_B[keys_B > 0]).tolist():
            rows = np.flatnonzero((class_B == index) & (keys_B > 0))
            start = int(ends_B[rows[0]] - tokens_B[rows[0]])
            segments.append(self._segment(index, start, np.bincount(slot_B[rows], weights=tokens_B[rows])))
        return LoraSegments(segments)

    def _segment(self, class_index: int, start: int, counts_S: npt.NDArray[np.float64]) -> Segment:
        ends_S = np.cumsum(counts_S).astype(np.int32)
        used = np.flatnonzero(counts_S)
        return Segment(
            table=self._tables[RANK_CLASSES[class_index]],
            start=start,
            stop=start + int(ends_S[-1]),
            ends_S=torch.from_numpy(ends_S).to(self._device),
            slots=len(ends_S),
            only=int(used[0]) if len(used) == 1 else None,
        )

    def _locate(self, key: int) -> tuple[SlotTable, int]:
        class_index, slot = divmod(key - 1, self._slots)
        return self._tables[RANK_CLASSES[class_index]], slot
