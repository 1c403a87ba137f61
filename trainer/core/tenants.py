"""One run inside the trainer: its adapter, optimizer, random state and step.

Knows how a run starts, takes a step and is saved. Refuses to know other runs, slots and the wire. Whatever is a run's own
lives here, so that releasing this object releases all of it.
"""

import torch
from pydantic import Field
from torch import Tensor

from trainer.contracts.adapters import LoraSpec
from trainer.contracts.base import PublicId, Wire
from trainer.contracts.training import LossSpec, OptimizerSpec
from trainer.core.adapters import Adapter, TargetShape
from trainer.core.checkpoints import Checkpoint
from trainer.core.errors import NonFinite
from trainer.core.optimizer import AdamW

SPEC_NAME = "run_spec.json"
"""Where a run's specification lies, in the run's folder."""


class RunSpec(Wire):
    """What fixes a run's arithmetic. It never changes: the batch log replays under it."""

    team_id: PublicId
    lora: LoraSpec = LoraSpec()
    optimizer: OptimizerSpec = OptimizerSpec()
    loss: LossSpec = LossSpec()
    seed: int = Field(default=0, ge=-(2**63), lt=2**63)


class Tenant:
    """`step` is the number of optimizer steps done, and so the newest version."""

    def __init__(
        self,
        run_id: str,
        spec: RunSpec,
        shapes: tuple[TargetShape, ...],
        dtype: torch.dtype,
        device: torch.device | str = "cpu",
    ) -> None:
        self.run_id = run_id
        self.spec = spec
        self.step = 0
        self.adapter = Adapter(spec.lora, shapes, dtype, device)
        self.optimizer = AdamW(spec.optimizer, self.adapter.params_P.numel(), dtype, device)
        self.generator = torch.Generator().manual_seed(spec.seed)
        self.adapter.initialise(self.generator)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue from a checkpoint of this run, or of the one that it is a fork of."""
        params_P = checkpoint.tensors["params"]
        if params_P.shape != self.adapter.params_P.shape:
            raise ValueError(f"the checkpoint has {len(params_P)} parameters, the adapter {self.adapter.params_P.numel()}")
        self.adapter.params_P.copy_(params_P)
        self.optimizer.first_P.copy_(checkpoint.tensors["first_moments"])
        self.optimizer.second_P.copy_(checkpoint.tensors["second_moments"])
        self.generator.set_state(checkpoint.tensors["random_state"])
        self.step = checkpoint.step

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint holds; copies, so that the run may go on while it is written."""
        return {
            "params": self.adapter.params_P.clone().cpu(),
            "first_moments": self.optimizer.first_P.clone().cpu(),
            "second_moments": self.optimizer.second_P.clone().cpu(),
            "random_state": self.generator.get_state(),
        }

    def check_gradient(self) -> None:
        """Raises NonFinite, with the gradient dropped, when it is not finite. Parameters and moments are untouched."""
        grads_P = self.adapter.grads_P
        # A finite norm has finite entries, and costs less to find than a look at each; the norm alone may overflow.
        if not torch.isfinite(torch.linalg.vector_norm(grads_P)) and not torch.isfinite(grads_P).all():
            self.adapter.drop_gradient()
            raise NonFinite("the batch gives a gradient that is not finite")

    def apply_gradient(self) -> dict[str, float]:
        """One optimizer step on the accumulated gradient, which is then dropped."""
        self.step += 1
        metrics = self.optimizer.step(self.adapter.params_P, self.adapter.grads_P, self.step)
        self.adapter.drop_gradient()
        return metrics

    def clear(self) -> None:
        """Overwrite everything that the run owned, so that a reference kept by mistake holds nothing either."""
        self.adapter.clear()
        self.optimizer.clear()
        self.step = 0
