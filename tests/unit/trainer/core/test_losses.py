"""Values and gradients of the loss against a slow reference: plain arithmetic written from the table in docs/algorithms.md."""

import math

import pytest
import torch

from trainer.contracts.training import LossSpec
from trainer.core.losses import metrics_of, run_loss
from trainer.core.streams import Denominators, Signals


def signals(count: int, **streams) -> Signals:
    defaults = {
        "temperatures": [1.0] * count,
        "sampler_logprobs": [0.0] * count,
        "advantages": [0.0] * count,
        "rl_weights": [0.0] * count,
        "ce_weights": [0.0] * count,
        "ref_kl_weights": [0.0] * count,
        "ref_logprobs": [0.0] * count,
    }
    return Signals(**{name: torch.tensor(values, dtype=torch.float64) for name, values in (defaults | streams).items()})


def loss_of(logprobs, given: Signals, spec: LossSpec, counts: Denominators):
    pi = torch.tensor(logprobs, dtype=torch.float64, requires_grad=True)
    loss, tally = run_loss(pi, torch.zeros(len(logprobs), dtype=torch.float64), given, counts, spec)
    (gradient,) = torch.autograd.grad(loss, pi)
    return loss.item(), gradient.tolist(), metrics_of(tally)


def reference_rl(kind: str, pi: float, mu: float, advantage: float) -> float:
    d = max(-20.0, min(20.0, pi - mu))
    r, delta = math.exp(d), math.exp(pi) - math.exp(mu)
    if kind == "dppo":
        invalid = (advantage > 0 and delta > 0.2) or (advantage < 0 and delta < -0.2)
        return -(0.0 if invalid else 1.0) * advantage * r + 1e-3 * d * d
    if kind == "ipo":
        return -(0.0 if abs(delta) > 0.1 else 1.0) * advantage * r + 1e-3 * d * d
    if kind == "ppo_clip":
        return -min(r * advantage, max(0.8, min(1.28, r)) * advantage)
    return -advantage * pi


CASES = [
    # (π, μ, advantage): inside the region; beyond it in the advantage's direction; beyond it against the direction; zero.
    ((-1.0, -1.1, 1.0), (-0.2, -1.5, 0.7), (-2.0, -0.4, -0.5)),
    ((-1.5, -0.2, 0.7), (-0.4, -2.0, -0.5), (-0.9, -1.0, 0.0)),
    ((-3.0, -3.0, 2.0), (-0.1, -0.3, -1.0), (-0.3, -0.1, 1.0)),
]


@pytest.mark.parametrize("kind", ["dppo", "ipo", "ppo_clip", "reinforce"])
@pytest.mark.parametrize("tokens", CASES)
def test_rl_equals_the_reference(kind, tokens):
    pi, mu, advantages = (list(column) for column in zip(*tokens, strict=True))
    weights = [1.0, 0.5, 2.0]
    given = signals(3, sampler_logprobs=mu, advantages=advantages, rl_weights=weights)
    loss, gradient, _ = loss_of(pi, given, LossSpec(kind=kind), Denominators(rl=5, ce=0, ref_kl=0))

    def total(values):
        return sum(w * reference_rl(kind, p, m, a) for w, p, m, a in zip(weights, values, mu, advantages, strict=True)) / 5

    assert loss == pytest.approx(total(pi), rel=1e-12)
    assert gradient == pytest.approx(numeric_gradient(total, pi), abs=1e-7)


def numeric_gradient(function, at, width=1e-6):
    slopes = []
    for index in range(len(at)):
        above, below = list(at), list(at)
        above[index] += width
        below[index] -= width
        slopes.append((function(above) - function(below)) / (2 * width))
    return slopes


def test_dppo_by_hand():
    # Token 1: r = e^0.1, kept. Token 2: Δ = e^-0.2 - e^-1.5 = 0.596 > 0.2 with A > 0, masked. Token 3: A = 0.
    given = signals(3, sampler_logprobs=[-1.1, -1.5, -2.0], advantages=[1.0, 1.0, 0.0], rl_weights=[1.0] * 3)
    loss, gradient, metrics = loss_of([-1.0, -0.2, -2.0], given, LossSpec(), Denominators(rl=3, ce=0, ref_kl=0))
    assert loss == pytest.approx((-math.exp(0.1) + 1e-3 * 0.01 + 1e-3 * 1.69) / 3, rel=1e-12)
    assert gradient == pytest.approx([(-math.exp(0.1) + 2e-3 * 0.1) / 3, 2e-3 * 1.3 / 3, 0.0], rel=1e-12)
    assert metrics["masked_fraction"] == pytest.approx(1 / 3)
    assert metrics["zero_advantage_token_fraction"] == pytest.approx(1 / 3)


def test_ref_kl_pulls_towards_the_reference_with_the_distance_held_fixed():
    given = signals(2, sampler_logprobs=[-1.0, -0.1], ref_kl_weights=[1.0, 1.0], ref_logprobs=[-0.5, -0.5])
    # Token 2: Δ = e^-1 - e^-0.1 = -0.54 < -0.2, masked; its κ·d² stays.
    loss, gradient, metrics = loss_of([-1.0, -1.0], given, LossSpec(), Denominators(rl=0, ce=0, ref_kl=2))
    assert loss == pytest.approx((-0.5 + 1e-3 * 0.81) / 2, rel=1e-12)
    assert gradient == pytest.approx([-0.5 / 2, 2e-3 * -0.9 / 2], rel=1e-12)
    assert metrics["masked_fraction"] == 0.5


def test_components_overlap_on_a_token_and_divide_by_their_own_counts():
    given = signals(
        3,
        sampler_logprobs=[-1.0, 0.0, -2.0],
        advantages=[1.0, 0.0, 0.0],
        rl_weights=[1.0, 0.0, 0.0],
        ce_weights=[0.1, 0.1, 0.0],
    )
    loss, gradient, _ = loss_of([-1.0, -3.0, -2.0], given, LossSpec(), Denominators(rl=4, ce=10, ref_kl=0))
    assert loss == pytest.approx(-1.0 / 4 + (0.1 * 1.0 + 0.1 * 3.0) / 10, rel=1e-12)
    assert gradient == pytest.approx([-1.0 / 4 - 0.1 / 10, -0.1 / 10, 0.0], rel=1e-12)


@pytest.mark.parametrize("kind", ["dppo", "ipo", "ppo_clip"])
@pytest.mark.parametrize(("pi", "mu"), [(-91.0, -1.0), (-1.0, -91.0), (-math.inf, -1.0), (-1.0, -math.inf)])
@pytest.mark.parametrize("advantage", [1.0, -1.0])
def test_extreme_ratios_stay_finite(kind, pi, mu, advantage):
    given = signals(1, sampler_logprobs=[mu], advantages=[advantage], rl_weights=[1.0])
    loss, gradient, metrics = loss_of([pi], given, LossSpec(kind=kind), Denominators(rl=1, ce=0, ref_kl=0))
    assert math.isfinite(loss) and math.isfinite(gradient[0])
    assert metrics["clamped_fraction"] == 1.0


def test_a_token_outside_every_component_touches_nothing():
    given = signals(2, sampler_logprobs=[-1.0, -math.inf], advantages=[1.0, 0.0], rl_weights=[1.0, 0.0])
    loss, gradient, _ = loss_of([-1.0, -math.inf], given, LossSpec(), Denominators(rl=1, ce=0, ref_kl=0))
    assert loss == -1.0 and gradient == [-1.0, 0.0]


def test_mismatch_kl_is_the_mean_of_r_minus_1_minus_log_r():
    given = signals(2, sampler_logprobs=[-1.0, -1.0], advantages=[1.0, 1.0], rl_weights=[1.0, 1.0])
    _, _, metrics = loss_of([-1.0, -0.9], given, LossSpec(), Denominators(rl=2, ce=0, ref_kl=0))
    assert metrics["mismatch_kl"] == pytest.approx((math.exp(0.1) - 1 - 0.1) / 2)
