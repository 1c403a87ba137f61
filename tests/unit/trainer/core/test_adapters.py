"""Adapters: flat buffers, grouped products, stacks of unlike ranks and targets."""

import pytest
import torch

from trainer.contracts.adapters import LoraSpec
from trainer.core.adapter_stack import AdapterStack
from trainer.core.adapters import Adapter, Factors, TargetShape
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


def separately(owner: Adapter, target: str, x: torch.Tensor, layered: dict[str, Factors]) -> torch.Tensor:
    size = next(shape.out_size for shape in SHAPES if shape.name == target)
    if target not in layered:
        return torch.zeros(len(x), size, dtype=x.dtype)
    return owner.scale * (x @ layered[target].a[0].T @ layered[target].b[0].T)


def added(stack: AdapterStack, site: str, x: torch.Tensor, width: int) -> torch.Tensor:
    out = torch.zeros(len(x), width, dtype=x.dtype)
    stack.at(0, site).add_(out, x)
    return out


UNLIKE = (
    {"rank": 8, "alpha": 16},
    {"rank": 3, "alpha": 1, "target_modules": ("q_proj", "down_proj")},
    {"rank": 16, "alpha": 4, "target_modules": ("v_proj", "gate_proj", "up_proj")},
)
SITE_TARGETS = [
    ("attention_in", ("q_proj", "k_proj", "v_proj")),
    ("mlp_in", ("gate_proj", "up_proj")),
    ("mlp_out", ("down_proj",)),
]
ROWS = [4, 6, 5]


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize(("site", "targets"), SITE_TARGETS)
def test_a_stack_of_unlike_adapters_equals_each_alone(grouped, site, targets):
    """Outputs, and the gradients of factors and input, against autograd over one adapter after the other."""
    owners = [adapter(seed, **lora) for seed, lora in enumerate(UNLIKE)]
    generator = torch.Generator().manual_seed(4)
    x = torch.randn(15, 32 if site == "mlp_out" else 16, generator=generator).requires_grad_()
    leaves = [owner.params_P.clone().requires_grad_() for owner in owners]
    parts = []
    for owner, leaf, rows in zip(owners, leaves, x.split(ROWS), strict=True):
        layered = owner.layered(leaf)
        parts.append(torch.cat([separately(owner, target, rows, layered) for target in targets], 1))
    expected = torch.cat(parts)
    grad = torch.randn(expected.shape, generator=generator)
    wanted = torch.autograd.grad(expected, [x, *leaves], grad, allow_unused=True)

    stack = AdapterStack(owners, SHAPES, ROWS, grouped=grouped)
    out, grad_x = torch.zeros_like(expected), torch.zeros_like(x)
    delta = stack.at(0, site)
    delta.backward_(grad, x.detach(), delta.add_(out, x.detach()), grad_x)
    stack.deliver()
    close = {"rtol": 1e-4, "atol": 1e-4}
    torch.testing.assert_close(out, expected, **close)
    torch.testing.assert_close(grad_x, wanted[0], **close)
    for owner, found in zip(owners, wanted[1:], strict=True):
        torch.testing.assert_close(owner.grads_P, torch.zeros_like(owner.params_P) if found is None else found, **close)


def test_a_site_that_nobody_adapts_adds_nothing():
    for grouped in (False, True):
        assert AdapterStack([adapter(1, target_modules=("q_proj",))], SHAPES, [3], grouped=grouped).at(0, "mlp_out") is None


def test_passes_add_up_until_the_gradient_is_dropped():
    owner, x = adapter(1), torch.ones(3, 16)
    found = []
    for _ in range(2):
        stack = AdapterStack([owner], SHAPES, [3])
        delta = stack.at(0, "attention_in")
        delta.backward_(torch.ones(3, 32), x, delta.add_(torch.zeros(3, 32), x), None)
        stack.deliver()
        found.append(owner.grads_P.clone())
    torch.testing.assert_close(found[1], 2 * found[0])
    touched = {name for name, own in owner.layered(owner.grads_P).items() if own.a.any() or own.b.any()}
    assert touched == {"q_proj", "k_proj", "v_proj"}
    owner.drop_gradient()
    assert not owner.grads_P.any()


def test_version_0_equals_the_base_model():
    fresh = Adapter(LoraSpec(), SHAPES, torch.float32)
    fresh.initialise(torch.Generator().manual_seed(0))
    stack = AdapterStack([fresh], SHAPES, [3])
    assert not added(stack, "attention_in", torch.randn(3, 16), 32).any()
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
    assert not any(factors.a.any() or factors.b.any() for _, factors in owner.named_tensors())
