"""AdamW over one run's flat vector, its learning-rate schedule and its gradient clip.

Knows a vector of parameters and one of gradients. Refuses to know what they mean. Every run has its own, so that no
hyper-parameter, moment or norm is shared.
"""

import math

import torch
from torch import Tensor
from torch.optim.adamw import adamw

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
    """Decoupled weight decay, bias-corrected moments: torch's own kernel, one pass over the run's whole vector."""

    def __init__(self, spec: OptimizerSpec, size: int, dtype: torch.dtype, device: torch.device | str = "cpu") -> None:
        self.spec = spec
        self.first_P = torch.zeros(size, dtype=dtype, device=device)
        self.second_P = torch.zeros(size, dtype=dtype, device=device)

    @torch.no_grad()
    def step(self, params_P: Tensor, grads_P: Tensor, step: int) -> dict[str, float]:
        """Clip by the norm of this run's gradient, update in place, and say the norm and the rate. `step` counts from 1.

        The gradient is used up: it is scaled where it lies."""
        spec = self.spec
        norm = float(torch.linalg.vector_norm(grads_P))
        clip = min(1.0, spec.max_grad_norm / (norm + 1e-6))
        if clip < 1.0:
            grads_P.mul_(clip)
        rate = learning_rate(spec, step)
        adamw(
            [params_P],
            [grads_P],
            [self.first_P],
            [self.second_P],
            [],
            [torch.tensor(step - 1.0, device=params_P.device)],  # the kernel counts it up
            fused=True,
            amsgrad=False,
            beta1=spec.betas[0],
            beta2=spec.betas[1],
            lr=rate,
            weight_decay=spec.weight_decay,
            eps=spec.eps,
            maximize=False,
        )
        return {"grad_norm": norm, "learning_rate": rate}

    def clear(self) -> None:
        self.first_P.zero_()
        self.second_P.zero_()
