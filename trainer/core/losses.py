"""The loss: Σ over components of per-token weights, each divided by the run's own token count.

Knows the formulas of docs/algorithms.md, "Loss", and nothing of who computed the signals. Refuses to know algorithms by
name, packs, and other runs.

  π trainer log-prob at the sampler's temperature · μ sampler log-prob · d = clamp(π − μ, ±20) · r = exp d · Δ = e^π − e^μ
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from trainer.contracts.samples import LossKind
from trainer.contracts.training import LossSpec
from trainer.core.streams import Denominators, Signals

LOG_RATIO_MAX = 20.0


@dataclass(frozen=True)
class Ratio:
    """π against μ for some tokens. `d` and `r` carry gradient, `delta` and `clamped` do not."""

    logprob: Tensor
    d: Tensor
    r: Tensor
    delta: Tensor
    clamped: Tensor

    @classmethod
    def of(cls, logprob: Tensor, sampler_logprob: Tensor) -> "Ratio":
        raw = logprob - sampler_logprob
        d = raw.clamp(-LOG_RATIO_MAX, LOG_RATIO_MAX)  # before exp: masking afterwards would leave 0 · inf
        delta = (logprob.exp() - sampler_logprob.exp()).detach()
        return cls(logprob, d, d.exp(), delta, raw.detach().abs() > LOG_RATIO_MAX)


@dataclass(frozen=True)
class TokenLoss:
    """Loss per token, and where the trust region took the policy gradient away."""

    values: Tensor
    masked: Tensor


def _trust_region(ratio: Ratio, signal: Tensor, invalid: Tensor, kappa: float) -> TokenLoss:
    """−1[valid]·signal·r + κ·d²: the pull towards the sampler stays where the policy gradient is masked."""
    gain = torch.where(invalid, torch.zeros_like(ratio.r), signal * ratio.r)
    return TokenLoss(kappa * ratio.d.square() - gain, invalid)


def _dppo(ratio: Ratio, advantage: Tensor, spec: LossSpec) -> TokenLoss:
    rises = (advantage > 0) & (ratio.delta > spec.delta_max)
    falls = (advantage < 0) & (ratio.delta < -spec.delta_max)
    return _trust_region(ratio, advantage, rises | falls, spec.kappa)


def _ipo(ratio: Ratio, advantage: Tensor, spec: LossSpec) -> TokenLoss:
    return _trust_region(ratio, advantage, ratio.delta.abs() > spec.ipo_delta_max, spec.kappa)


def _ppo_clip(ratio: Ratio, advantage: Tensor, spec: LossSpec) -> TokenLoss:
    plain = ratio.r * advantage
    clipped = ratio.r.clamp(1 - spec.clip_low, 1 + spec.clip_high) * advantage
    return TokenLoss(-torch.minimum(plain, clipped), (clipped < plain).detach())


def _reinforce(ratio: Ratio, advantage: Tensor, spec: LossSpec) -> TokenLoss:
    return TokenLoss(-advantage * ratio.logprob, torch.zeros_like(ratio.clamped))


RL_LOSSES: dict[LossKind, Callable[[Ratio, Tensor, LossSpec], TokenLoss]] = {
    "dppo": _dppo,
    "ppo_clip": _ppo_clip,
    "ipo": _ipo,
    "reinforce": _reinforce,
}


def _ref_kl(ratio: Ratio, ref_logprob: Tensor, spec: LossSpec) -> TokenLoss:
    pull = (ref_logprob - ratio.logprob).detach()
    return _trust_region(ratio, pull, ratio.delta < -spec.delta_max, spec.kappa)


TALLY = (
    "loss",
    "trained",
    "entropy",
    "compared",
    "mismatch_kl",
    "clamped",
    "masked",
    "rl",
    "zero_advantage",
    "ce",
    "ce_loss",
)
"""What a pack adds up for a run; `metrics_of` turns the sums into means over the whole step."""


def run_loss(
    logprob_P: Tensor, entropy_P: Tensor, signals: Signals, counts: Denominators, spec: LossSpec
) -> tuple[Tensor, Tensor]:
    """One run's share of a pack: its loss (a scalar with gradient) and its tally [len(TALLY)] in float64."""
    tally = dict.fromkeys(TALLY, torch.zeros((), dtype=torch.float64))
    loss = logprob_P.new_zeros(())

    def compared(chosen: Tensor, token_loss: Callable[[Ratio], TokenLoss], weights: Tensor, count: int) -> Tensor:
        ratio = Ratio.of(logprob_P[chosen], signals.sampler_logprobs[chosen])
        result = token_loss(ratio)
        for name, values in (
            ("compared", torch.ones_like(ratio.delta)),
            ("mismatch_kl", (ratio.r - 1 - ratio.d).detach()),
            ("clamped", ratio.clamped),
            ("masked", result.masked),
        ):
            tally[name] = tally[name] + values.sum(dtype=torch.float64)
        return (weights[chosen] * result.values).sum() / max(1, count)

    rl, ref_kl, ce = (weights != 0 for weights in (signals.rl_weights, signals.ref_kl_weights, signals.ce_weights))
    if rl.any():
        advantages = signals.advantages[rl]
        loss = loss + compared(rl, lambda r: RL_LOSSES[spec.kind](r, advantages, spec), signals.rl_weights, counts.rl)
        tally["rl"] = rl.sum(dtype=torch.float64)
        tally["zero_advantage"] = (advantages == 0).sum(dtype=torch.float64)
    if ref_kl.any():
        targets = signals.ref_logprobs[ref_kl]
        loss = loss + compared(ref_kl, lambda r: _ref_kl(r, targets, spec), signals.ref_kl_weights, counts.ref_kl)
    if ce.any():
        ce_loss = -(signals.ce_weights[ce] * logprob_P[ce]).sum() / max(1, counts.ce)
        loss = loss + ce_loss
        tally["ce"], tally["ce_loss"] = ce.sum(dtype=torch.float64), ce_loss.detach().double()
    tally |= {
        "loss": loss.detach().double(),
        "trained": torch.tensor(float(len(logprob_P)), dtype=torch.float64),
        "entropy": entropy_P.sum(dtype=torch.float64),
    }
    return loss, torch.stack([tally[name] for name in TALLY])


def metrics_of(tally: Tensor) -> dict[str, float]:
    """Means over a step's tokens. Shares of nothing are 0; `ce_loss` is there where a token carried that component."""
    sums = dict(zip(TALLY, tally.tolist(), strict=True))

    def share(part: str, whole: str) -> float:
        return sums[part] / sums[whole] if sums[whole] else 0.0

    return {
        "loss": sums["loss"],
        "entropy": share("entropy", "trained"),
        "mismatch_kl": share("mismatch_kl", "compared"),
        "clamped_fraction": share("clamped", "compared"),
        "masked_fraction": share("masked", "compared"),
        "zero_advantage_token_fraction": share("zero_advantage", "rl"),
        "trained_tokens": sums["trained"],
        **({"ce_loss": sums["ce_loss"]} if sums["ce"] else {}),
    }
