"""HTTP of the trainer service (`python -m trainer.service`). Orchestrators call it; nobody else does.

  GET    /health                          -> TrainerHealth
  GET    /stats                           -> TrainerStats
  PUT    /runs/{run_id}                   OpenRun -> RunOpened   (idempotent; a higher fencing token takes the run over)
  POST   /runs/{run_id}/steps             StepRequest -> StepResult   (idempotent by step)
  POST   /runs/{run_id}/checkpoints       CheckpointRequest -> CheckpointWritten
  DELETE /runs/{run_id}?fencing_token=N   -> 204
  POST   /exports                         ExportRequest -> ExportWritten (trainer.contracts.exports; idempotent by export)

Errors: {"detail", "code"}; codes `stale_lease` 409, `run_not_open` 404, `no_free_slot` 503, `step_out_of_order` 409,
`bad_batch` 422 and `non_finite` 422 (the run alone fails, its parameters are untouched), `not_servable` 422, `run_mismatch` 409
(opened before under another specification), `unknown_state` 409 (its files are of another release), `not_exportable` 422,
`bad_request` 422, `unauthorized` 401, `too_large` 413, `internal` 500.
"""

from typing import Annotated

from pydantic import Field

from trainer.contracts.adapters import LoraSpec
from trainer.contracts.base import PublicId, Sha256, Wire
from trainer.contracts.samples import LossKind, TrainBatch


class OptimizerSpec(Wire):
    """AdamW with linear warm-up, then constant or cosine to zero at `total_steps`."""

    learning_rate: Annotated[float, Field(gt=0, le=1)] = 1e-4
    betas: tuple[float, float] = (0.9, 0.95)
    eps: Annotated[float, Field(gt=0)] = 1e-8
    weight_decay: Annotated[float, Field(ge=0, le=1)] = 0.0
    warmup_steps: Annotated[int, Field(ge=0)] = 5
    schedule: Annotated[str, Field(pattern="^(constant|cosine)$")] = "constant"
    total_steps: Annotated[int, Field(ge=1)] = 100
    max_grad_norm: Annotated[float, Field(gt=0)] = 1.0


class LossSpec(Wire):
    """Thresholds of docs/algorithms.md, "Loss"."""

    kind: LossKind = "dppo"
    delta_max: Annotated[float, Field(gt=0, le=1)] = 0.2
    ipo_delta_max: Annotated[float, Field(gt=0, le=1)] = 0.1
    clip_low: Annotated[float, Field(gt=0, lt=1)] = 0.2
    clip_high: Annotated[float, Field(gt=0)] = 0.28
    kappa: Annotated[float, Field(ge=0)] = 1e-3


class OpenRun(Wire):
    """Claim a slot. With committed state under the artifact root the run goes on from its newest checkpoint, replaying the
    batch log behind it; otherwise it starts at version 0 from `seed`."""

    team_id: PublicId
    fencing_token: Annotated[int, Field(ge=1)]
    lora: LoraSpec = LoraSpec()
    optimizer: OptimizerSpec = OptimizerSpec()
    loss: LossSpec = LossSpec()
    seed: int = 0
    init_from: str | None = None
    """Artifact path of an adapter version or checkpoint to start from (warm start); ignored once own state exists."""
    is_fork: bool = False
    """Take all of the checkpoint `init_from`, moments, random state and step too: the run goes on as the other would have."""


class RunOpened(Wire):
    run_id: PublicId
    slot: int
    step: int
    """Optimizer steps done so far: also the newest adapter version."""
    adapter_digest: Sha256
    adapter_path: str


class StepRequest(Wire):
    fencing_token: Annotated[int, Field(ge=1)]
    batch: TrainBatch


class StepResult(Wire):
    """Answered after the new version's manifest is on disk. `tokens` is what the step trained on: the billed quantity."""

    run_id: PublicId
    step: int
    adapter_digest: Sha256
    adapter_path: str
    size_bytes: int
    tokens: int
    metrics: dict[str, float]
    """loss, grad_norm, entropy, mismatch_kl, masked_fraction, clamped_fraction, learning_rate, step_s, queue_s, …"""
    packs: int
    """Forward/backward passes that carried this run's rows."""
    packs_shared: int
    """… of which carried rows of at least one other run too."""
    replayed: bool = False


class CheckpointRequest(Wire):
    fencing_token: Annotated[int, Field(ge=1)]


class CheckpointWritten(Wire):
    run_id: PublicId
    step: int
    path: str
    digest: Sha256
    size_bytes: int


class TrainerHealth(Wire):
    status: str
    pid: int
    base_model: str
    base_digest: Sha256
    slots_total: int
    slots_used: int
    passes: int = 0
    """Forward and backward passes so far: who waits for a step can tell a slow trainer from one that hangs."""


class TrainerStats(Wire):
    packs: int
    packs_shared: int
    shared_by: dict[str, int]
    """'<run_a>,<run_b>,…' (sorted) -> packs that carried exactly these runs, where more than one."""
    base_digest_now: Sha256
    """Recomputed from the live tensors at the call, to prove that no run moved the base."""
