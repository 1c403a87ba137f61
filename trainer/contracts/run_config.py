"""The configuration of a run as the REST API takes it and echoes it (wire/LoRA request body, plus our own fields).

Defaults stand here and nowhere else. The TOML spelling is turned into this shape by `toml_config`. Only `name`, `model` and
`environments` must be given.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, AliasChoices, ConfigDict, Field, model_validator

from trainer.contracts.base import Wire
from trainer.contracts.samples import LossKind

AlgorithmId = Literal["grpo"]

STEPS_MAX = 100_000
BATCH_MAX = 4_096
GROUP_MAX = 256


class ModelRef(Wire):
    name: Annotated[str, Field(min_length=1, max_length=255)]


class EnvironmentRef(Wire):
    """`id` is `owner/name`, optionally `owner/name@version`. `timeout` is the deadline of one rollout in seconds."""

    id: Annotated[str, Field(min_length=1, max_length=255)]
    name: Annotated[str, Field(max_length=255)] | None = None
    version: Annotated[str, Field(max_length=64)] | None = None
    args: dict[str, Any] = {}
    ratio: Annotated[float, Field(gt=0)] = 1.0
    group_size: Annotated[int, Field(ge=1, le=GROUP_MAX)] | None = None
    max_turns: Annotated[int, Field(ge=1, le=1000)] = 16
    max_total_tokens: Annotated[int, Field(ge=1)] | None = None
    timeout: Annotated[float, Field(gt=0, le=86_400)] = 120.0
    num_examples: Annotated[int, Field(ge=-1)] | None = None
    rollouts_per_example: Annotated[int, Field(ge=1, le=2048)] | None = None


class EvalPlan(Wire):
    """Evaluations during a run, on the same axis as its steps. Never delays training."""

    environments: list[EnvironmentRef] = []
    interval: Annotated[int, Field(ge=1)] = 20
    num_examples: Annotated[int, Field(ge=-1)] = 32
    rollouts_per_example: Annotated[int, Field(ge=1, le=2048)] = 1
    skip_first_step: bool = False


class CheckpointPlan(Wire):
    interval: Annotated[int, Field(ge=1)] = 10
    keep_cloud: Annotated[int, Field(ge=-1)] = -1


class AdapterPlan(Wire):
    """Which versions stay deployable: every `interval` steps (0: the last one only), the newest `keep_last` (-1: all)."""

    interval: Annotated[int, Field(ge=0)] = 0
    keep_last: Annotated[int, Field(ge=-1)] = -1


class OptimizerConfig(Wire):
    betas: tuple[Annotated[float, Field(ge=0, lt=1)], Annotated[float, Field(ge=0, lt=1)]] = (0.9, 0.95)
    weight_decay: Annotated[float, Field(ge=0, le=1)] = 0.0
    warmup_steps: Annotated[int, Field(ge=0)] = 5
    schedule: Literal["constant", "cosine"] = "constant"
    max_grad_norm: Annotated[float, Field(gt=0)] = 1.0


class AlgorithmConfig(Wire):
    """`id` names a file of trainer/algorithms; `loss` is the kind of its rl component; `options` are the algorithm's own."""

    id: AlgorithmId = "grpo"
    loss: LossKind = "dppo"
    options: dict[str, float | bool | str] = {}


def _not_the_interpreters(name: str) -> str:
    if name in {"PATH", "HOME"} or name.startswith(("LD_", "PYTHON")):
        raise ValueError(f"{name} is the sandbox's own; choose another name")
    return name


SecretName = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]{0,127}$"), AfterValidator(_not_the_interpreters)]
"""Name of an environment variable that tenant code sees in its sandbox."""
SecretValue = Annotated[str, Field(min_length=1, max_length=8192, pattern=r"^[^\x00]+$")]


class Secret(Wire):
    key: SecretName
    value: SecretValue = Field(repr=False)


class RunConfig(Wire):
    """`batch_size` counts rollouts a step; it is a multiple of `rollouts_per_example`, the size of a group."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True, allow_inf_nan=False)

    name: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    model: ModelRef
    environments: Annotated[
        list[EnvironmentRef], Field(min_length=1, max_length=32, validation_alias=AliasChoices("environments", "env"))
    ]
    algorithm: AlgorithmConfig = AlgorithmConfig()
    max_steps: Annotated[int, Field(ge=1, le=STEPS_MAX)] = 100
    batch_size: Annotated[int, Field(ge=1, le=BATCH_MAX)] = 128
    rollouts_per_example: Annotated[int, Field(ge=1, le=GROUP_MAX)] = 8
    max_inflight_rollouts: Annotated[int, Field(ge=1, le=BATCH_MAX * 4)] | None = None
    oversampling_factor: Annotated[float, Field(ge=1, le=8)] | None = None
    max_off_policy_steps: Annotated[int, Field(ge=0, le=1024)] = 8
    learning_rate: Annotated[float, Field(gt=0, le=1)] = 1e-4
    lora_alpha: Annotated[float, Field(gt=0, le=1024)] = 16.0
    lora_rank: Annotated[int, Field(ge=1, le=256)] = 8
    optimizer: OptimizerConfig = OptimizerConfig()
    max_tokens: Annotated[int, Field(ge=1, le=32_768)] = 512
    temperature: Annotated[float, Field(gt=0, le=5)] = 1.0
    seed: int = 0
    checkpoint_id: str | None = None
    eval: EvalPlan | None = None
    checkpoints: CheckpointPlan = CheckpointPlan()
    adapters: AdapterPlan = AdapterPlan()
    failure_pause_fraction: Annotated[float, Field(gt=0, le=1)] = 0.5
    """The run pauses with the reason when more than this share of a window's rollouts fails."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.batch_size % self.rollouts_per_example:
            raise ValueError(
                f"batch_size {self.batch_size} is not a multiple of rollouts_per_example {self.rollouts_per_example}"
            )
        if self.max_inflight_rollouts is not None and self.oversampling_factor is not None:
            raise ValueError("max_inflight_rollouts and oversampling_factor exclude each other; give one")
        if self.max_inflight_rollouts is not None and self.max_inflight_rollouts < self.rollouts_per_example:
            raise ValueError(
                f"max_inflight_rollouts {self.max_inflight_rollouts} is below rollouts_per_example {self.rollouts_per_example}"
            )
        return self


class EvalConfig(Wire):
    """A hosted evaluation. `num_examples` -1 takes the whole taskset."""

    environment: EnvironmentRef
    model: str
    """Served name: a base model, or `base:adapter_id`."""
    num_examples: Annotated[int, Field(ge=-1, le=100_000)] = 32
    rollouts_per_example: Annotated[int, Field(ge=1, le=2048)] = 1
    max_tokens: Annotated[int, Field(ge=1, le=32_768)] = 512
    temperature: Annotated[float, Field(ge=0, le=5)] = 1.0
    max_concurrent: Annotated[int, Field(ge=1, le=1024)] = 64
    timeout_minutes: Annotated[int, Field(ge=1, le=1440)] = 120
