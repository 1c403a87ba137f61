"""The adapters of one pack, and what they add to each product with the base weights.

Knows which rows of a pack belong to which adapter, and the products of both passes. Refuses to know samples, losses and files.

Autograd never sees a factor: gradients are written into room of the pack's own, and `deliver` adds them to the adapters once.
Rows are sorted by adapter, and weights are never gathered per row. On a CPU every adapter's product is a call of its own, in
the orientation that BLAS is quickest in (rank first: z is [r, n], B lies as [r, out]); elsewhere one grouped product per factor
serves all adapters.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional

from trainer.core.adapters import Adapter, TargetShape

SITES: dict[str, tuple[str, ...]] = {
    "attention_in": ("q_proj", "k_proj", "v_proj"),
    "attention_out": ("o_proj",),
    "mlp_in": ("gate_proj", "up_proj"),
    "mlp_out": ("down_proj",),
}
"""Targets that read the same input are one site: one product with all their A, then one per target with its B."""

RANK_ALIGNMENT = 8  # grouped products want rows of whole 16-byte units, in bfloat16 too


class SiteDelta(ABC):
    """What a pack's adapters add at one site of one layer. No tensor here belongs to autograd."""

    @abstractmethod
    def add_(self, out_TO: Tensor, x_TI: Tensor) -> tuple[Tensor, ...]:
        """Add scale · x Aᵀ Bᵀ to `out_TO`; returns what `backward_` wants back."""

    @abstractmethod
    def backward_(self, grad_TO: Tensor, x_TI: Tensor, saved: Sequence[Tensor], grad_x_TI: Tensor | None) -> None:
        """Write the factors' gradients, and add the input's to `grad_x_TI` where that is wanted."""


class _Factors(Protocol):
    """All adapters' factors at all sites."""

    def at(self, layer: int, site: str) -> SiteDelta | None: ...

    def deliver(self) -> None: ...


class _Own:
    """One adapter's factors as a CPU wants them, all layers in one copy, and room for their gradients in the same shapes:
    `a` [layers, targets × r, in] of each site, times the scale; `b` [layers, r, out] of each target."""

    def __init__(self, adapter: Adapter, dtype: torch.dtype) -> None:
        self._adapter, factors = adapter, adapter.layered(adapter.params_P)
        self.rank = adapter.spec.rank
        self.targets = {site: [name for name in names if name in factors] for site, names in SITES.items()}
        self.a = {
            site: torch.cat([factors[name].a for name in names], dim=1).mul_(adapter.scale).to(dtype)
            for site, names in self.targets.items()
            if names
        }
        self.b = {name: own.b.mT.to(dtype).contiguous() for name, own in factors.items()}
        self.grad_a = {site: torch.zeros_like(a) for site, a in self.a.items()}
        self.grad_b = {name: torch.zeros_like(b) for name, b in self.b.items()}

    def deliver(self) -> None:
        into = self._adapter.layered(self._adapter.grads_P)
        for site, grad in self.grad_a.items():
            for name, own in zip(self.targets[site], torch.split(grad, self.rank, dim=1), strict=True):
                into[name].a.add_(own, alpha=self._adapter.scale)
        for name, grad in self.grad_b.items():
            into[name].b.add_(grad.mT)


@dataclass(frozen=True)
class _Share:
    """One adapter's part of a site: its place in the pack, A and its gradient, and per attached target the place among the
    site's targets, B and its gradient."""

    group: int
    rank: int
    a: Tensor
    grad_a: Tensor
    targets: tuple[tuple[int, Tensor, Tensor], ...]


class _LoopedDelta(SiteDelta):
    """A call for each adapter and product: every adapter at its own rank, nothing padded."""

    def __init__(self, shares: Sequence[_Share], group_rows: Sequence[int], widths: Sequence[int]) -> None:
        self._shares, self._rows, self._widths = shares, list(group_rows), list(widths)

    def add_(self, out_TO: Tensor, x_TI: Tensor) -> tuple[Tensor, ...]:
        x_In, saved = torch.split(x_TI.T, self._rows, dim=1), []
        out_nO = [torch.split(columns, self._rows) for columns in torch.split(out_TO, self._widths, dim=1)]
        for share in self._shares:
            z_Rn = share.a @ x_In[share.group]
            for (target, b_RO, _), z_rn in zip(share.targets, torch.split(z_Rn.T, share.rank, dim=1), strict=True):
                out_nO[target][share.group].addmm_(z_rn, b_RO)
            saved.append(z_Rn)
        return tuple(saved)

    def backward_(self, grad_TO: Tensor, x_TI: Tensor, saved: Sequence[Tensor], grad_x_TI: Tensor | None) -> None:
        x_nI = torch.split(x_TI, self._rows)
        grad_nO = [torch.split(columns, self._rows) for columns in torch.split(grad_TO, self._widths, dim=1)]
        grad_x_nI = None if grad_x_TI is None else torch.split(grad_x_TI, self._rows)
        for share, z_Rn in zip(self._shares, saved, strict=True):
            grad_z_Rn, group = torch.empty_like(z_Rn), share.group
            pieces = zip(share.targets, torch.split(z_Rn, share.rank), torch.split(grad_z_Rn, share.rank), strict=True)
            for (target, b_RO, grad_b), z_rn, grad_z_rn in pieces:
                own_nO = grad_nO[target][group]
                torch.mm(b_RO, own_nO.T, out=grad_z_rn)
                torch.mm(z_rn, own_nO, out=grad_b)
            torch.mm(grad_z_Rn, x_nI[group], out=share.grad_a)
            if grad_x_nI is not None:
                grad_x_nI[group].addmm_(grad_z_Rn.T, share.a)


class LoopedFactors:
    """For a CPU."""

    def __init__(
        self, adapters: Sequence[Adapter], shapes: dict[str, TargetShape], group_rows: Sequence[int], dtype: torch.dtype
    ) -> None:
        self._owners = [_Own(adapter, dtype) for adapter in adapters]
        self._widths = {site: [shapes[name].out_size for name in names] for site, names in SITES.items()}
        self._group_rows = group_rows

    def at(self, layer: int, site: str) -> SiteDelta | None:
        shares = [_share(group, own, layer, site) for group, own in enumerate(self._owners) if own.targets[site]]
        return _LoopedDelta(shares, self._group_rows, self._widths[site]) if shares else None

    def deliver(self) -> None:
        for own in self._owners:
            own.deliver()


def _share(group: int, own: _Own, layer: int, site: str) -> _Share:
    targets = ((SITES[site].index(name), own.b[name][layer], own.grad_b[name][layer]) for name in own.targets[site])
    return _Share(group, own.rank, own.a[site][layer], own.grad_a[site][layer], tuple(targets))


@dataclass(frozen=True)
class _Stacked:
    """A site's factors of all adapters: A [layers, groups, targets × R, in] times the scale, B [layers, groups, R, out] of each
    target, and room for the gradients. Padded with zeros to the largest rank, and where an adapter has not the target."""

    a: Tensor
    b: tuple[Tensor, ...]
    grad_a: Tensor
    grad_b: tuple[Tensor, ...]


class _GroupedDelta(SiteDelta):
    """One product per factor for all adapters."""

    def __init__(self, layer: int, stacked: _Stacked, ends: Tensor, rank: int) -> None:
        self._a, self._grad_a = stacked.a[layer], stacked.grad_a[layer]
        self._targets = [(b[layer], grad_b[layer]) for b, grad_b in zip(stacked.b, stacked.grad_b, strict=True)]
        self._widths = [b.shape[-1] for b, _ in self._targets]
        self._ends, self._rank = ends, rank

    def add_(self, out_TO: Tensor, x_TI: Tensor) -> tuple[Tensor, ...]:
        z_TR = functional.grouped_mm(x_TI, self._a.mT, offs=self._ends)
        pieces = zip(torch.split(out_TO, self._widths, dim=1), torch.split(z_TR, self._rank, dim=1), self._targets, strict=True)
        for columns, own_TR, (b, _) in pieces:
            columns.add_(functional.grouped_mm(own_TR, b, offs=self._ends))
        return (z_TR,)

    def backward_(self, grad_TO: Tensor, x_TI: Tensor, saved: Sequence[Tensor], grad_x_TI: Tensor | None) -> None:
        (z_TR,) = saved
        grad_z_TR = torch.empty_like(z_TR)
        pieces = zip(
            torch.split(grad_TO, self._widths, dim=1),
            torch.split(z_TR, self._rank, dim=1),
            torch.split(grad_z_TR, self._rank, dim=1),
            self._targets,
            strict=True,
        )
        for columns, own_TR, grad_own_TR, (b, grad_b) in pieces:
            grad_own_TR.copy_(functional.grouped_mm(columns, b.mT, offs=self._ends))
            grad_b.copy_(functional.grouped_mm(own_TR.T, columns, offs=self._ends))
        self._grad_a.copy_(functional.grouped_mm(grad_z_TR.T, x_TI, offs=self._ends))
        if grad_x_TI is not None:
            grad_x_TI.add_(functional.grouped_mm(grad_z_TR, self._a, offs=self._ends))


class GroupedFactors:
    """For every device but a CPU, where a call costs more than padding."""

    def __init__(
        self, adapters: Sequence[Adapter], shapes: dict[str, TargetShape], group_rows: Sequence[int], dtype: torch.dtype
    ) -> None:
        self._adapters, self._dtype, device = adapters, dtype, adapters[0].params_P.device
        self._rank = -(-max(adapter.spec.rank for adapter in adapters) // RANK_ALIGNMENT) * RANK_ALIGNMENT
        self._ends = torch.tensor(list(group_rows), device=device).cumsum(0).to(torch.int32)
        held = {name for adapter in adapters for name in adapter.spec.target_modules}
        self._sites = {site: self._stack(site, shapes) for site, names in SITES.items() if held & set(names)}

    def at(self, layer: int, site: str) -> SiteDelta | None:
        stacked = self._sites.get(site)
        return None if stacked is None else _GroupedDelta(layer, stacked, self._ends, self._rank)

    def deliver(self) -> None:
        for group, adapter in enumerate(self._adapters):
            into, rank = adapter.layered(adapter.grads_P), adapter.spec.rank
            for site, stacked in self._sites.items():
                for name, grad_a, grad_b in zip(
                    SITES[site], torch.split(stacked.grad_a[:, group], self._rank, dim=1), stacked.grad_b, strict=True
                ):
                    if name in into:
                        into[name].a.add_(grad_a[:, :rank], alpha=adapter.scale)
                        into[name].b.add_(grad_b[:, group, :rank].mT)

    def _stack(self, site: str, shapes: dict[str, TargetShape]) -> _Stacked:
        names, groups = SITES[site], len(self._adapters)
        layered = [adapter.layered(adapter.params_P) for adapter in self._adapters]
        layers = next(iter(layered[0].values())).a.shape[0]

        def room(*sizes: int) -> Tensor:
            return torch.zeros(layers, groups, *sizes, dtype=self._dtype, device=self._adapters[0].params_P.device)

        a = room(len(names) * self._rank, shapes[names[0]].in_size)
        b = tuple(room(self._rank, shapes[name].out_size) for name in names)
        for group, (adapter, factors) in enumerate(zip(self._adapters, layered, strict=True)):
            for index, name in enumerate(names):
                if name in factors:
                    start, rank = index * self._rank, adapter.spec.rank
                    a[:, group, start : start + rank] = factors[name].a * adapter.scale
                    b[index][:, group, :rank] = factors[name].b.mT
        return _Stacked(a, b, torch.zeros_like(a), tuple(torch.zeros_like(one) for one in b))


class AdapterStack:
    """The factors of a pack's adapters, site by site. `group_rows` says how many rows each has, in order; `dtype` is that of
    the activations, if it is not the adapters' own. `grouped` says whether one product serves all adapters; None: by device."""

    def __init__(
        self,
        adapters: Sequence[Adapter],
        shapes: Sequence[TargetShape],
        group_rows: Sequence[int],
        *,
        dtype: torch.dtype | None = None,
        grouped: bool | None = None,
    ) -> None:
        first = adapters[0].params_P
        by_name = {shape.name: shape for shape in shapes if shape.layer == shapes[0].layer}
        kind = GroupedFactors if (first.device.type != "cpu" if grouped is None else grouped) else LoopedFactors
        self._factors: _Factors = kind(adapters, by_name, group_rows, dtype or first.dtype)

    def at(self, layer: int, site: str) -> SiteDelta | None:
        """None where no adapter of the pack attaches."""
        return self._factors.at(layer, site)

    def deliver(self) -> None:
        """Add what the backward pass wrote to the adapters' gradients. Once per pass."""
        self._factors.deliver()
