"""The operations of a pass over frozen weights, with their backward passes written out.

Knows tensors. Refuses to know models, adapters beyond `SiteDelta`, and losses. Autograd would keep more of the forward pass
and walk through more memory: here nothing is kept but what the backward pass reads, and no product for a frozen weight exists.
Whatever an adapter learns is added to its own gradient on the way (`SiteDelta.backward_`).
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.nn import functional

from trainer.core.adapter_stack import SiteDelta
from trainer.core.layout import Layout


class _AdaptedLinear(Function):
    @staticmethod
    def forward(
        ctx: Any, x_TI: Tensor, weight_OI: Tensor, residual_TO: Tensor | None, delta: SiteDelta | None, _: Tensor
    ) -> Tensor:
        if residual_TO is None:
            out_TO = functional.linear(x_TI, weight_OI)
        else:
            out_TO = torch.addmm(residual_TO, x_TI, weight_OI.T)
        saved = delta.add_(out_TO, x_TI) if delta is not None else ()
        ctx.delta, ctx.has_residual = delta, residual_TO is not None
        ctx.save_for_backward(weight_OI, x_TI, *saved)
        return out_TO

    @staticmethod
    def backward(ctx: Any, grad_TO: Tensor) -> tuple[Tensor | None, ...]:
        weight_OI, x_TI, *saved = ctx.saved_tensors
        grad_x_TI = grad_TO @ weight_OI if ctx.needs_input_grad[0] else None
        if ctx.delta is not None:
            ctx.delta.backward_(grad_TO, x_TI, saved, grad_x_TI)
        return grad_x_TI, None, grad_TO if ctx.has_residual else None, None, None


def adapted_linear(
    x_TI: Tensor, weight_OI: Tensor, delta: SiteDelta | None, *, anchor: Tensor, residual_TO: Tensor | None = None
) -> Tensor:
    """x Wᵀ, plus what the adapters add, plus the residual: [T, O]. `anchor` is any tensor that requires a gradient: it gets
    none, and makes autograd come by here although no weight is its own."""
    out: Tensor = _AdaptedLinear.apply(x_TI, weight_OI, residual_TO, delta, anchor)  # type: ignore[no-untyped-call]
    return out


class _RmsNorm(Function):
    @staticmethod
    def forward(ctx: Any, x_TH: Tensor, weight_H: Tensor, eps: float) -> Tensor:
        wide_TH = x_TH.float() if x_TH.dtype == torch.bfloat16 else x_TH
        inverse_T1 = wide_TH.square().mean(dim=-1, keepdim=True).add_(eps).rsqrt_()
        ctx.save_for_backward(x_TH, inverse_T1, weight_H)
        return (wide_TH * inverse_T1).to(x_TH.dtype).mul_(weight_H)

    @staticmethod
    def backward(ctx: Any, grad_TH: Tensor) -> tuple[Tensor | None, ...]:
        x_TH, inverse_T1, weight_H = ctx.saved_tensors
        scaled_TH = (grad_TH * weight_H).to(inverse_T1.dtype)
        wide_TH = x_TH.to(inverse_T1.dtype)
        along_T1 = (scaled_TH * wide_TH).mean(dim=-1, keepdim=True).mul_(inverse_T1 * inverse_T1)
        return scaled_TH.addcmul_(wide_TH, along_T1, value=-1).mul_(inverse_T1).to(x_TH.dtype), None, None


def rms_norm(x_TH: Tensor, weight_H: Tensor, eps: float) -> Tensor:
    """x / √(mean x² + eps) · weight. The mean is taken in float32 at least."""
    out: Tensor = _RmsNorm.apply(x_TH, weight_H, eps)  # type: ignore[no-untyped-call]
    return out


class _GatedUnit(Function):
    @staticmethod
    def forward(ctx: Any, fused_TM: Tensor) -> Tensor:
        ctx.save_for_backward(fused_TM)
        gate, up = fused_TM.chunk(2, dim=-1)
        return functional.silu(gate).mul_(up)

    @staticmethod
    def backward(ctx: Any, grad_TI: Tensor) -> Tensor:
        (fused_TM,) = ctx.saved_tensors
        gate, up = fused_TM.chunk(2, dim=-1)
        grad_fused = torch.empty_like(fused_TM)
        grad_gate, grad_up = grad_fused.chunk(2, dim=-1)
        torch.mul(grad_TI, functional.silu(gate), out=grad_up)
        grad_gate.copy_(torch.ops.aten.silu_backward(grad_TI * up, gate))
        return grad_fused


def gated_unit(fused_TM: Tensor) -> Tensor:
    """silu(first half of the columns) · second half."""
    out: Tensor = _GatedUnit.apply(fused_TM)  # type: ignore[no-untyped-call]
    return out


class _HeadsOf(Function):
    @staticmethod
    def forward(
        ctx: Any, fused_TD: Tensor, layout: Layout, cosine: Tensor, sine: Tensor, heads: int, kv_heads: int
    ) -> tuple[Tensor, ...]:
        ctx.layout, ctx.heads, ctx.kv_heads = layout, heads, kv_heads
        ctx.save_for_backward(cosine, sine)
        found: list[Tensor] = []
        for block in layout.blocks:
            rows = fused_TD.index_select(0, block.gather).view(block.rows, block.width, heads + 2 * kv_heads, -1)
            angles = _angles(cosine, sine, block.first, block.width)
            turned, value = _turned(rows[:, :, : heads + kv_heads], *angles), rows[:, :, heads + kv_heads :]
            query, key = turned[:, :, :heads], turned[:, :, heads:]
            if block.beginning is not None:
                before = fused_TD.index_select(0, block.beginning).view(1, block.first, heads + 2 * kv_heads, -1)
                key_before = _turned(before[:, :, heads : heads + kv_heads], *_angles(cosine, sine, 0, block.first))
                key, value = _behind(key_before, key), _behind(before[:, :, heads + kv_heads :], value)
            found += [query.transpose(1, 2), _repeated(key, heads // kv_heads), _repeated(value, heads // kv_heads)]
        return tuple(found)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        cosine, sine = ctx.saved_tensors
        heads, kv_heads, rows, before = ctx.heads, ctx.kv_heads, [], []
        for index, block in enumerate(ctx.layout.blocks):
            query, key, value = (grad.transpose(1, 2) for grad in grads[3 * index : 3 * index + 3])
            key, value = _summed(key, kv_heads), _summed(value, kv_heads)
            fused = query.new_empty(block.rows, block.width, heads + 2 * kv_heads, query.shape[-1])
            cosine_W, sine_W = _angles(cosine, sine, block.first, block.width)
            _turned(query, cosine_W, -sine_W, out=fused[:, :, :heads])
            _turned(key[:, block.first :], cosine_W, -sine_W, out=fused[:, :, heads : heads + kv_heads])
            fused[:, :, heads + kv_heads :] = value[:, block.first :]
            rows.append(fused.view(block.rows * block.width, -1))
            if block.beginning is not None:
                cosine_B, sine_B = _angles(cosine, sine, 0, block.first)
                key_before = _turned(key[:, : block.first].sum(dim=0, keepdim=True), cosine_B, -sine_B)[0]
                before.append((block.beginning, torch.cat([key_before, value[:, : block.first].sum(dim=0)], dim=1)))
        # A token asks in one place of one row, and the columns that fill a row up have no gradient.
        together = rows[0] if len(rows) == 1 else torch.cat(rows)
        grad_TD = together.index_select(0, ctx.layout.restore_T)
        for places, grad in before:  # no token twice among the places: the sum has one order
            grad_TD[:, -grad[0].numel() :].index_add_(0, places, grad.flatten(1))
        return grad_TD, None, None, None, None, None


def _angles(cosine: Tensor, sine: Tensor, first: int, width: int) -> tuple[Tensor, Tensor]:
    """Of the positions of a row's columns."""
    return cosine[first : first + width], sine[first : first + width]


def _behind(before: Tensor, rows: Tensor) -> Tensor:
    """Each of the rows [rows, width, heads, head] behind the one beginning [1, first, heads, head]."""
    return torch.cat([before.expand(len(rows), -1, -1, -1), rows], dim=1)


def _turned(x: Tensor, cosine: Tensor, sine: Tensor, out: Tensor | None = None) -> Tensor:
    """[rows, width, heads, head] by the angles of each column [width, 1, head / 2]."""
    out = torch.empty(x.shape, dtype=x.dtype, device=x.device) if out is None else out
    (first, second), (to_first, to_second) = x.chunk(2, dim=-1), out.chunk(2, dim=-1)
    torch.mul(first, cosine, out=to_first).addcmul_(second, sine, value=-1)
    torch.mul(second, cosine, out=to_second).addcmul_(first, sine)
    return out


def _repeated(x: Tensor, times: int) -> Tensor:
    """[rows, width, heads, head] to [rows, heads × times, width, head]: each head for the queries that share it."""
    x = x.transpose(1, 2)
    return x if times == 1 else x.repeat_interleave(times, dim=1)


def _summed(grad: Tensor, kv_heads: int) -> Tensor:
    """The gradients of the queries that share a head, together: [rows, width, heads, head] to [rows, width, kv_heads, head]."""
    rows, width, heads, size = grad.shape
    return grad if heads == kv_heads else grad.reshape(rows, width, kv_heads, heads // kv_heads, size).sum(dim=3)


def heads_of(
    fused_TD: Tensor, layout: Layout, angles: tuple[Tensor, Tensor], heads: int, kv_heads: int
) -> list[tuple[Tensor, Tensor, Tensor]]:
    """Queries, keys and values [rows, heads, width, head] of each of the layout's blocks, turned by their positions; keys and
    values begin with those of the block's beginning. `fused_TD` has the columns of all heads: queries, keys, values."""
    found: tuple[Tensor, ...] = _HeadsOf.apply(fused_TD, layout, *angles, heads, kv_heads)  # type: ignore[no-untyped-call]
    return list(zip(found[::3], found[1::3], found[2::3], strict=True))


class _FlatOf(Function):
    @staticmethod
    def forward(ctx: Any, layout: Layout, *mixed: Tensor) -> Tensor:
        ctx.layout, ctx.heads = layout, mixed[0].shape[1]
        rows = [x.transpose(1, 2).reshape(x.shape[0] * x.shape[2], -1) for x in mixed]
        return (rows[0] if len(rows) == 1 else torch.cat(rows)).index_select(0, layout.restore_T)

    @staticmethod
    def backward(ctx: Any, grad_TD: Tensor) -> tuple[Tensor | None, ...]:
        found: list[Tensor | None] = [None]
        for block in ctx.layout.blocks:
            rows = grad_TD.index_select(0, block.gather)
            if block.filler is not None:
                rows.index_fill_(0, block.filler, 0)
            found.append(rows.view(block.rows, block.width, ctx.heads, -1).transpose(1, 2))
        return tuple(found)


def flat_of(layout: Layout, mixed: list[Tensor]) -> Tensor:
    """The attention outputs of the blocks [rows, heads, width, head] back to flat tokens [T, heads × head]."""
    out: Tensor = _FlatOf.apply(layout, *mixed)  # type: ignore[no-untyped-call]
    return out
