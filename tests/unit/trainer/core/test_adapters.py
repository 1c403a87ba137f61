"""Adapters: flat buffers, grouped products, stacks of unlike ranks and targets."""

import pytest
import torch

from trainer.contracts.adapters import LoraSpec
from trainer.core.adapters import Adapter, AdapterStack, TargetShape, grouped_linear
from trainer.core.errors import NotServable

SHAPES = tuple(
    TargetShape(0, name, *size)
    for name, size in {
        "q_proj": (16, 16),
        "k_proj": (16, 8),
        "v_proj": (16, 8),
        "o_proj": (16, 16),
        "gate_proj": (16, 32),
        "up_proj": (16, 32),
        "down_proj": (32, 16),
    }.items()
)


def adapter(seed: int, dtype=torch.float32, **lora) -> Adapter:
    made = Adapter(LoraSpec(**lora), SHAPES, dtype)
    made.params_P.copy_(torch.randn(made.params_P.numel(), generator=torch.Generator().manual_seed(seed), dtype=dtype))
    return made


def separately(owner: Adapter, target: str, x: torch.Tensor) -> torch.Tensor:
    factors = owner.factors.get((0, target))
    size = next(shape.out_size for shape in SHAPES if shape.name == target)
    return torch.zeros(len(x), size, dtype=x.dtype) if factors is None else owner.scale * (x @ factors.a.T @ factors.b.T)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("rows", [(7,), (5, 5), (1, 9, 3)])
def test_grouped_products_equal_a_loop(dtype, rows):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(sum(rows), 16, generator=generator, dtype=dtype)
    weights = torch.randn(len(rows), 24, 16, generator=generator, dtype=dtype)
    expected = torch.cat([part @ weight.T for part, weight in zip(x.split(list(rows)), weights, strict=True)])
    torch.testing.assert_close(grouped_linear(x, weights, rows), expected)


def test_a_stack_of_unlike_adapters_equals_each_alone():
    owners = [
        adapter(1, rank=8, alpha=16),
        adapter(2, rank=3, alpha=1, target_modules=("q_proj", "down_proj")),
        adapter(3, rank=16, alpha=4, target_modules=("v_proj", "gate_proj", "up_proj")),
    ]
    rows = [4, 6, 5]
    stack = AdapterStack(owners, SHAPES, rows)
    x = torch.randn(15, 16, generator=torch.Generator().manual_seed(4))
    for site, targets in (("attention_in", ("q_proj", "k_proj", "v_proj")), ("mlp_in", ("gate_proj", "up_proj"))):
        parts = [torch.cat([separately(o, t, part) for t in targets], 1) for o, part in zip(owners, x.split(rows), strict=True)]
        torch.testing.assert_close(stack.delta(0, site, x), torch.cat(parts), rtol=1e-4, atol=1e-4)


def test_a_site_that_nobody_adapts_adds_nothing():
    stack = AdapterStack([adapter(1, target_modules=("q_proj",))], SHAPES, [3])
    assert stack.delta(0, "mlp_out", torch.randn(3, 32)) is None


def test_gradients_land_in_the_flat_buffer():
    owner = adapter(1)
    stack = AdapterStack([owner], SHAPES, [3])
    stack.delta(0, "attention_in", torch.ones(3, 16)).square().sum().backward()
    touched = {shape.name: factors.b.grad.abs().sum().item() > 0 for shape, factors in owner.named_tensors()}
    assert {name for name, is_touched in touched.items() if is_touched} == {"q_proj", "k_proj", "v_proj"}
    assert owner.grads_P.abs().sum().item() == pytest.approx(
        sum(f.a.grad.abs().sum().item() + f.b.grad.abs().sum().item() for _, f in owner.named_tensors()), rel=1e-5
    )


def test_version_0_equals_the_base_model():
    fresh = Adapter(LoraSpec(), SHAPES, torch.float32)
    fresh.initialise(torch.Generator().manual_seed(0))
    stack = AdapterStack([fresh], SHAPES, [3])
    assert stack.delta(0, "attention_in", torch.randn(3, 16)).abs().max() == 0
    assert all(factors.a.abs().sum() > 0 for _, factors in fresh.named_tensors())


@pytest.mark.parametrize("targets", [("q_proj", "lm_head"), ()])
def test_unknown_targets_are_refused_by_name(targets):
    with pytest.raises(NotServable, match="lm_head" if targets else "empty list"):
        Adapter(LoraSpec(target_modules=targets), SHAPES, torch.float32)


def test_clearing_leaves_nothing():
    owner = adapter(1)
    owner.grads_P.fill_(1.0)
    owner.clear()
    assert not owner.params_P.any() and not owner.grads_P.any()
    assert not any(factors.a.any() or factors.b.any() or factors.a.grad.any() for _, factors in owner.named_tensors())
