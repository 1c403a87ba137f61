"""AdamW over one run's flat vector, its learning-rate schedule and its gradient clip.

Knows a vector of parameters and one of gradients. Refuses to know what they mean. Every run has its own, so that no
hyper-parameter, moment or norm is shared.
"""

import math

import torch
from torch import Tensor

from trainer.contracts.training import OptimizerSpec


def learning_rate(spec: OptimizerSpec, step: int) -> float:
    """Rate of step 1, 2, …: linear warm-up, then constant, or a cosine that has reached zero after `total_steps` steps."""
    if step <= spec.warmup_steps:
        return spec.learning_rate * step / spec.warmup_steps
    if spec.schedule == "constant":
        return spec.learning_rate
    progress = (step - 1 - spec.warmup_steps) / max(1, spec.total_steps - spec.warmup_steps)
    return spec.learning_rate * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))


class AdamW:
    """Decoupled weight decay, bias-corrected moments; equal to torch.optim.AdamW, which a test checks."""

    def __init__(self, spec: OptimizerSpec, size: int, dtype: torch.dtype) -> None:
        self.spec = spec
        self.first_P = torch.zeros(size, dtype=dtype)
        self.second_P = torch.zeros(size, dtype=dtype)

    def step(self, params_P: Tensor, grads_P: Tensor, step: int) -> dict[str, float]:
        """Clip by the norm of this run's gradient, update in place, and say the norm and the rate. `step` counts from 1."""
        spec = self.spec
        norm = float(torch.linalg.vector_norm(grads_P))
        grads_P = grads_P * min(1.0, spec.max_grad_norm / (norm + 1e-6))
        beta_first, beta_second = spec.betas
        rate = learning_rate(spec, step)
        with torch.no_grad():
            self.first_P.lerp_(grads_P, 1 - beta_first)
            self.second_P.mul_(beta_second).addcmul_(grads_P, grads_P, value=1 - beta_second)
            scale = (self.second_P / (1 - beta_second**step)).sqrt_().add_(spec.eps)
            params_P.mul_(1 - rate * spec.weight_decay)
            params_P.addcdiv_(self.first_P, scale, value=-rate / (1 - beta_first**step))
        return {"grad_norm": norm, "learning_rate": rate}

    def clear(self) -> None:
        self.first_P.zero_()
        self.second_P.zero_()
