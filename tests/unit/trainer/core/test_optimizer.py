"""AdamW and its schedule against torch's, with the clip of one run's own gradient."""

import pytest
import torch

from trainer.contracts.training import OptimizerSpec
from trainer.core.optimizer import AdamW, learning_rate


def test_equals_torch_over_many_steps():
    spec = OptimizerSpec(
        learning_rate=3e-3, betas=(0.8, 0.97), weight_decay=0.02, warmup_steps=3, total_steps=20, max_grad_norm=0.7
    )
    generator = torch.Generator().manual_seed(0)
    ours = torch.randn(50, generator=generator, dtype=torch.float64)
    theirs = ours.clone().requires_grad_()
    optimizer = AdamW(spec, 50, torch.float64)
    reference = torch.optim.AdamW([theirs], lr=1.0, betas=spec.betas, eps=spec.eps, weight_decay=spec.weight_decay)
    for step in range(1, 21):
        gradient = torch.randn(50, generator=generator, dtype=torch.float64)
        theirs.grad = gradient.clone()
        torch.nn.utils.clip_grad_norm_([theirs], spec.max_grad_norm)
        reference.param_groups[0]["lr"] = learning_rate(spec, step)
        reference.step()
        optimizer.step(ours, gradient, step)
    torch.testing.assert_close(ours, theirs.detach(), rtol=1e-12, atol=1e-12)


def test_a_small_gradient_is_not_scaled():
    optimizer = AdamW(OptimizerSpec(max_grad_norm=10.0), 2, torch.float64)
    metrics = optimizer.step(torch.zeros(2, dtype=torch.float64), torch.tensor([3.0, 4.0], dtype=torch.float64), 1)
    assert metrics["grad_norm"] == 5.0
    assert optimizer.first_P.tolist() == pytest.approx([0.3, 0.4])


def test_warm_up_is_linear_and_reaches_the_rate():
    spec = OptimizerSpec(learning_rate=1.0, warmup_steps=4)
    assert [learning_rate(spec, step) for step in range(1, 7)] == [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]


def test_cosine_falls_from_the_full_rate_to_zero_after_the_last_step():
    spec = OptimizerSpec(learning_rate=1.0, warmup_steps=2, schedule="cosine", total_steps=10)
    rates = [learning_rate(spec, step) for step in range(3, 12)]
    assert rates[0] == 1.0 and rates[4] == pytest.approx(0.5) and rates[-1] == pytest.approx(0.0, abs=1e-12)
    assert rates == sorted(rates, reverse=True)
    assert learning_rate(spec, 50) == pytest.approx(0.0, abs=1e-12)


def test_no_warm_up_starts_at_the_full_rate():
    assert learning_rate(OptimizerSpec(learning_rate=0.5, warmup_steps=0), 1) == 0.5
