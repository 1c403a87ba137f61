"""Low-rank adapters: one flat buffer per run, and the stack of those that share a pack.

Knows factors A and B, ranks, scales and grouped products. Refuses to know optimizers, samples and files.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from trainer.contracts.adapters import LoraSpec
from trainer.core.errors import NotServable

RANK_ALIGNMENT = 8  # grouped products want rows of whole 16-byte units, in bfloat16 too

SITES: dict[str, tuple[str, ...]] = {
    "attention_in": ("q_proj", "k_proj", "v_proj"),
    "attention_out": ("o_proj",),
    "mlp_in": ("gate_proj", "up_proj"),
    "mlp_out": ("down_proj",),
}
"""Targets that read the same input are one site: one product with all their A, then one per target with its B."""


@dataclass(frozen=True)
class TargetShape:
    """A linear map of the base model that an adapter can attach to."""

    layer: int
    name: str
    in_size: int
    out_size: int


@dataclass(frozen=True)
class Factors:
    """A [r, in] and B [out, r], leaves of autograd and views into their adapter's flat buffers."""

    a: Tensor
    b: Tensor


class Adapter:
    """One run's factors in one flat buffer, their gradients in another: clipping, AdamW and files see a single vector.

    Elements lie layer by layer, target by target, A before B.
    """

    def __init__(self, spec: LoraSpec, shapes: Sequence[TargetShape], dtype: torch.dtype) -> None:
        unknown = sorted(set(spec.target_modules) - {shape.name for shape in shapes})
        if unknown or not spec.target_modules:
            raise NotServable(f"target_modules: the base model has no {unknown or 'module for an empty list'}")
        self.spec = spec
        self.shapes = tuple(shape for shape in shapes if shape.name in spec.target_modules)
        size = sum(spec.rank * (shape.in_size + shape.out_size) for shape in self.shapes)
        self.params_P = torch.zeros(size, dtype=dtype)
        self.grads_P = torch.zeros(size, dtype=dtype)
        self.factors = {(s.layer, s.name): f for s, f in zip(self.shapes, self._views(), strict=True)}

    @property
    def scale(self) -> float:
        return self.spec.alpha / self.spec.rank

    def initialise(self, generator: torch.Generator) -> None:
        """A uniform in ±1/√in (Kaiming with slope √5, what PEFT does), B zero: version 0 equals the base model."""
        for factors in self.factors.values():
            bound = factors.a.shape[1] ** -0.5
            factors.a.data.uniform_(-bound, bound, generator=generator)
            factors.b.data.zero_()

    def named_tensors(self) -> Iterator[tuple[TargetShape, Factors]]:
        for shape in self.shapes:
            yield shape, self.factors[shape.layer, shape.name]

    def clear(self) -> None:
        """Forget everything: what a released slot must hold."""
        self.params_P.zero_()
        self.grads_P.zero_()

    def _views(self) -> Iterator[Factors]:
        offset = 0

        def leaf(rows: int, columns: int) -> Tensor:
            nonlocal offset
            end = offset + rows * columns
            view = self.params_P[offset:end].view(rows, columns).requires_grad_()
            view.grad = self.grads_P[offset:end].view(rows, columns)  # autograd adds into the flat buffer in place
            offset = end
            return view

        for shape in self.shapes:
            yield Factors(leaf(self.spec.rank, shape.in_size), leaf(shape.out_size, self.spec.rank))


def grouped_linear(x_TI: Tensor, weights_GOI: Tensor, group_rows: Sequence[int]) -> Tensor:
    """Rows of group g times its own weight, transposed: [T, O]. Rows are sorted by group; never gathers weights per row."""
    if len(group_rows) == 1:
        return x_TI @ weights_GOI[0].T
    if x_TI.dtype == torch.float64:  # which the grouped kernel does not have
        parts = torch.split(x_TI, list(group_rows))
        return torch.cat([part @ weight.T for part, weight in zip(parts, weights_GOI, strict=True)])
    offsets = torch.tensor(group_rows, device=x_TI.device).cumsum(0).to(torch.int32)
    return functional.grouped_mm(x_TI, weights_GOI.mT, offs=offsets)


@dataclass(frozen=True)
class _Site:
    """Stacked factors of one layer's site: A [G, targets × R, in]; per target B [G, out, R], or its width where no adapter
    of the pack has the target."""

    a: Tensor
    b: tuple[Tensor | int, ...]


class AdapterStack:
    """The adapters of one pack, stacked per site once, so that each site costs one grouped product per factor.

    Ranks are padded with zeros to the largest of the pack; autograd drops the padding's gradient, so it never trains.
    """

    def __init__(self, adapters: Sequence[Adapter], shapes: Sequence[TargetShape], group_rows: Sequence[int]) -> None:
        self._adapters = adapters
        self._shapes = {(shape.layer, shape.name): shape for shape in shapes}
        self._group_rows = tuple(group_rows)
        largest = max(adapter.spec.rank for adapter in adapters)
        self._rank = largest if len(adapters) == 1 else -(-largest // RANK_ALIGNMENT) * RANK_ALIGNMENT
        scales = torch.tensor([adapter.scale for adapter in adapters], dtype=adapters[0].params_P.dtype)
        self._scale_T1 = scales.repeat_interleave(torch.tensor(self._group_rows))[:, None]
        self._sites = {(layer, site): self._stack(layer, SITES[site]) for layer in {s.layer for s in shapes} for site in SITES}

    def delta(self, layer: int, site: str, x_TI: Tensor) -> Tensor | None:
        """What the adapters add to the site's output [T, sum of its targets' outputs], or None where none attaches."""
        stacked = self._sites[layer, site]
        if stacked is None:
            return None
        z = grouped_linear(x_TI, stacked.a, self._group_rows) * self._scale_T1
        columns = torch.split(z, self._rank, dim=1)
        parts = [
            x_TI.new_zeros(len(x_TI), b) if isinstance(b, int) else grouped_linear(z_TR, b, self._group_rows)
            for z_TR, b in zip(columns, stacked.b, strict=True)
        ]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)

    def _stack(self, layer: int, targets: tuple[str, ...]) -> _Site | None:
        attached = [t for t in targets if any((layer, t) in adapter.factors for adapter in self._adapters)]
        if not attached:
            return None
        a = torch.stack([torch.cat([self._padded_a(adapter, layer, t) for t in targets]) for adapter in self._adapters])
        b: list[Tensor | int] = []
        for target in targets:
            if target not in attached:
                b.append(self._shapes[layer, target].out_size)
            else:
                b.append(torch.stack([self._padded_b(adapter, layer, target) for adapter in self._adapters]))
        return _Site(a, tuple(b))

    def _padded_a(self, adapter: Adapter, layer: int, target: str) -> Tensor:
        factors = adapter.factors.get((layer, target))
        if factors is None:
            return adapter.params_P.new_zeros(self._rank, self._shapes[layer, target].in_size)
        missing = self._rank - adapter.spec.rank
        return functional.pad(factors.a, (0, 0, 0, missing)) if missing else factors.a

    def _padded_b(self, adapter: Adapter, layer: int, target: str) -> Tensor:
        factors = adapter.factors.get((layer, target))
        if factors is None:
            return adapter.params_P.new_zeros(self._shapes[layer, target].out_size, self._rank)
        missing = self._rank - adapter.spec.rank
        return functional.pad(factors.b, (0, missing)) if missing else factors.b
