"""The configuration of a run as the REST API takes it and echoes it (wire/LoRA request body, plus our own fields).

Defaults stand here and nowhere else. The TOML spelling is turned into this shape by `toml_config`. Only `model` must be given,
and an environment or a dataset.
"""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, AliasChoices, ConfigDict, Field, ValidationInfo, field_validator, model_validator

from trainer.contracts.base import PublicId, Sha256, Wire
from trainer.contracts.filters import RolloutFilter
from trainer.contracts.samples import LossKind

AlgorithmId = Literal[
    "grpo",
    "max_rl",
    "rae",
    "echo",
    "opd",
    "opsd",
    "sft",
]

STEPS_MAX = 100_000
BATCH_MAX = 4_096
GROUP_MAX = 256


class Documented(Wire):
    """Fields whose docstrings are the user's documentation (`reference` writes it)."""

    model_config = ConfigDict(use_attribute_docstrings=True)


class ModelRef(Documented):
    name: Annotated[str, Field(min_length=1, max_length=255)]
    """A base model of `prime models`. In a file: `model = "tiny"`."""


class TeacherSampling(Documented):
    max_tokens: Annotated[int, Field(ge=1, le=32_768)] | None = None
    """Tokens of one reply of the teacher. Default: the run's own."""
    temperature: Annotated[float, Field(gt=0, le=5)] | None = None
    """At which the teacher samples; the trainer takes its log-probabilities at the same one. Default: the run's own."""


class Teacher(Documented):
    """A frozen model on the engines of the run's own base model. `sampling` matters where it generates (`sft`)."""

    model: ModelRef | None = None
    """The run's base model, `base:adapter_id` or `name@step` of your team. In a file: `model = "math@200"` under `[teacher]`."""
    checkpoint_id: str | None = None
    """The adapter of a checkpoint of your team, instead of `model`."""
    sampling: TeacherSampling = TeacherSampling()

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if (self.model is None) == (self.checkpoint_id is None):
            raise ValueError("name the teacher by model or by checkpoint_id, one of the two")
        return self


class AlgorithmChoice(Documented):
    """`id` names a file of trainer/algorithms; `options` are the algorithm's own."""

    id: AlgorithmId
    """How rewards become signals (see algorithms)."""
    options: dict[str, float | bool | str] = {}
    """The algorithm's own options."""


class Curriculum(Documented):
    """Which tasks are drawn, by the rewards of their latest groups. Groups that failed say nothing of a task."""

    groups: Annotated[int, Field(ge=1, le=16)] = 2
    """Latest groups of a task that are looked at. One with fewer is neither easy nor hard."""
    easy_threshold: Annotated[float, Field(ge=-2e6, le=2e6)] = 1.0
    """A task is easy when the mean reward of each of them is at least this. Above all rewards, none is."""
    hard_threshold: Annotated[float, Field(ge=-2e6, le=2e6)] = 0.0
    """A task is hard when the mean reward of each of them is at most this. Below all rewards, none is."""
    revisit: Annotated[float, Field(ge=0, le=1)] = 0.05
    """Chance that an easy or hard task is drawn all the same when its turn comes."""
    weight: Literal["uniform", "variance"] = "uniform"
    """`variance` draws a known task with a chance that grows with the variance of its rewards (see training)."""

    @field_validator("hard_threshold")
    @classmethod
    def _below_easy(cls, hard: float, given: ValidationInfo) -> float:
        easy = given.data.get("easy_threshold")
        if easy is not None and hard >= easy:
            raise ValueError(f"must be below easy_threshold, which is {easy:g}")
        return hard


class Replay(Documented):
    run_id: PublicId
    """An ended run of your team on the same base model. Its good rollouts of this environment are learnt from in their order, and
    from the start again when they are through."""


class GroupReward(Documented):
    name: Annotated[str, Field(min_length=1, max_length=128)]
    """`shortest_correct`, or one that the environment declares."""
    weight: Annotated[float, Field(ge=-1e3, le=1e3)] = 1.0
    """What it says of a rollout is multiplied by this and added to the rollout's own reward."""


class Seat(Documented):
    """Who plays one agent of an environment instead of the policy. It is never trained."""

    model: ModelRef
    """The run's base model, `base:adapter_id` or `name@step` of your team. In a file: `model = "tiny"`."""
    max_tokens: Annotated[int, Field(ge=1, le=32_768)] | None = None
    """Tokens of one reply. Default: the policy's."""
    temperature: Annotated[float, Field(ge=0, le=5)] | None = None
    """Of sampling. Default: the policy's."""


SeatName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
"""A field of the environment's configuration that is an agent, e.g. `user`."""
SEATS_MAX = 8


class EnvironmentRef(Documented):
    """`id` is `owner/name`, optionally `owner/name@version`. `timeout` is the deadline of one rollout in seconds."""

    id: Annotated[str, Field(min_length=1, max_length=255)]
    """`owner/name`, or `owner/name@version`; the name alone is one of your own."""
    name: Annotated[str, Field(max_length=255)] | None = None
    """How charts and logs call it. Default: its id."""
    version: Annotated[str, Field(max_length=64)] | None = None
    """Which release; without one, the newest that is neither red nor withdrawn."""
    args: dict[str, Any] = {}
    """Arguments of the taskset, as the environment's own configuration names them."""
    teacher: Teacher | None = None
    """Who teaches here, instead of `[teacher]`: several teachers make several experts' pupil out of one run."""
    generator: Literal["policy", "teacher"] | None = None
    """Who makes the rollouts here. Default: the teacher for `sft`, the policy for everything else."""
    replay: Replay | None = None
    """Learn from recorded rollouts instead of having any made, one after the other: for `sft`."""
    curriculum: Curriculum | None = None
    """Pass over tasks that teach nothing now (see training). Default: every task in its turn. In a file: `[env.curriculum]`."""
    algorithm: AlgorithmChoice | None = None
    """What turns the rollouts from here into signals, instead of the run's. In a file: `[env.algorithm]`."""
    group_rewards: Annotated[list[GroupReward], Field(max_length=16)] | None = None
    """What a rollout earns by comparison with the others of its group. Default: all that the environment declares, with weight 1.
    In a file: `[[env.group_rewards]]`."""
    seats: Annotated[dict[SeatName, Seat], Field(max_length=SEATS_MAX)] = {}
    """Agents of the environment that another model plays, as the user of a dialogue. The policy plays all others. In a file:
    `[env.seats.user]`."""
    ratio: Annotated[float, Field(gt=0)] = 1.0
    """Share of the groups that come from here, relative to the other environments."""
    group_size: Annotated[int, Field(ge=1, le=GROUP_MAX)] | None = None
    """Rollouts of one task here, instead of `rollouts_per_example`."""
    max_turns: Annotated[int, Field(ge=1, le=1000)] = 16
    """Model calls in one rollout; it is cut there."""
    max_total_tokens: Annotated[int, Field(ge=1)] | None = None
    """Tokens of one rollout, all turns together. Default: the model's context."""
    timeout: Annotated[float, Field(gt=0, le=86_400)] = 120.0
    """Deadline of one rollout, in seconds. One that runs over it failed: it is masked, counted and shown."""
    num_examples: Annotated[int, Field(ge=-1)] | None = None
    """The first so many tasks are used: all that training draws from; in an evaluation, instead of the plan's. -1: all."""
    rollouts_per_example: Annotated[int, Field(ge=1, le=2048)] | None = None
    """Rollouts of one task in an evaluation, instead of the plan's."""

    @field_validator("curriculum")
    @classmethod
    def _has_tasks_to_choose(cls, curriculum: Curriculum | None, given: ValidationInfo) -> Curriculum | None:
        if curriculum is not None and given.data.get("replay") is not None:
            raise ValueError("a replay takes recorded rollouts in their order; leave curriculum out")
        return curriculum


class DatasetRef(Documented):
    """Rows of a file that the team has uploaded: chat, or raw text. Learnt by `ce`, whatever the run's algorithm is."""

    id: Annotated[str, Field(min_length=1, max_length=100)]
    """Name or id of a dataset of your team (`prime datasets list`)."""
    sha256: Sha256 | None = None
    """Its content, which never changes under a name; the run's own configuration tells it."""
    name: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    """How charts and logs call it. Default: its id."""
    ratio: Annotated[float, Field(gt=0)] = 1.0
    """Share of each batch's places that its rows take, relative to the ratios of the other datasets and of the environments."""
    epochs: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """How often each row is learnt. Default: again and again until `max_steps`. A run that learns from datasets alone ends early
    when all are through."""
    shuffle: bool = True
    """In an order of the run's seed, anew each epoch; else in the file's order."""
    dropped_max: Annotated[float, Field(ge=0, le=1)] = 0.01
    """Share of the rows that the model's template or context may refuse; the run is refused when it is more."""


class EvalPlan(Documented):
    """Evaluations during a run, on the same axis as its steps. Never delays training."""

    environments: list[EnvironmentRef] = []
    """What is evaluated, as `[[eval.env]]` tables. Without one there are no evaluations."""
    interval: Annotated[int, Field(ge=1)] = 20
    """Steps between two evaluations."""
    num_examples: Annotated[int, Field(ge=-1)] = 32
    """Tasks an evaluation; -1 takes all."""
    rollouts_per_example: Annotated[int, Field(ge=1, le=2048)] = 1
    """Rollouts of one task."""
    skip_first_step: bool = False
    """Leave out the evaluation of version 0, which equals the base model."""

    @field_validator("environments")
    @classmethod
    def _takes_tasks_in_order(cls, environments: list[EnvironmentRef]) -> list[EnvironmentRef]:
        for ref in environments:
            if ref.curriculum is not None:
                raise ValueError(f"{ref.id}: an evaluation takes the first tasks in their order; leave curriculum out")
        return environments


class CheckpointPlan(Documented):
    interval: Annotated[int, Field(ge=1)] = 10
    """Steps between checkpoints: adapter, optimizer and position, from which a run resumes exactly."""
    keep_cloud: Annotated[int, Field(ge=-1)] = -1
    """How many of the newest checkpoints stay; -1 keeps all, and the newest one always stays."""


class AdapterPlan(Documented):
    """Which versions stay deployable: every `interval` steps (0: the last one only), the newest `keep_last` (-1: all)."""

    interval: Annotated[int, Field(ge=0)] = 0
    """Steps between versions that stay deployable; 0 keeps the last one only."""
    keep_last: Annotated[int, Field(ge=-1)] = -1
    """How many of the newest of them stay; -1 keeps all."""


class OptimizerConfig(Documented):
    betas: tuple[Annotated[float, Field(ge=0, lt=1)], Annotated[float, Field(ge=0, lt=1)]] = (0.9, 0.95)
    """Decay of the moments of AdamW."""
    weight_decay: Annotated[float, Field(ge=0, le=1)] = 0.0
    """Decoupled decay of AdamW, on the adapter's weights."""
    warmup_steps: Annotated[int, Field(ge=0)] = 5
    """Steps over which the learning rate rises from 0."""
    schedule: Literal["constant", "cosine"] = "constant"
    """What the learning rate does after that, until the last step: `max_steps`, or the end of the epochs of datasets alone."""
    max_grad_norm: Annotated[float, Field(gt=0)] = 1.0
    """The run's own gradient is clipped to this norm."""


class AlgorithmConfig(AlgorithmChoice):
    """Of every environment that makes no choice of its own. `loss` is the kind of the run's rl component."""

    id: AlgorithmId = "grpo"
    """How rewards become signals (see algorithms), wherever an environment does not choose."""
    loss: LossKind = "dppo"
    """Kind of the policy loss (see algorithms)."""


def _not_the_interpreters(name: str) -> str:
    if name in {"PATH", "HOME"} or name.startswith(("LD_", "PYTHON")):
        raise ValueError(f"{name} is the sandbox's own; choose another name")
    return name


SecretName = Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]{0,254}$"), AfterValidator(_not_the_interpreters)]
"""Name of an environment variable that tenant code sees in its sandbox."""
SecretValue = Annotated[str, Field(min_length=1, max_length=8192, pattern=r"^[^\x00]+$")]


class Secret(Wire):
    key: SecretName
    value: SecretValue = Field(repr=False)


class RunConfig(Documented):
    """`batch_size` counts rollouts and rows a step; it is a multiple of `rollouts_per_example`, the size of a group."""

    model_config = ConfigDict(populate_by_name=True)

    name: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    """What you call the run. Default: the name of its first environment or dataset."""
    model: ModelRef
    datasets: Annotated[list[DatasetRef], Field(max_length=8, validation_alias=AliasChoices("datasets", "dataset"))] = []
    """Files of rows that are learnt as they are, as `[[dataset]]` tables."""
    environments: Annotated[
        list[EnvironmentRef],
        Field(max_length=32, validate_default=True, validation_alias=AliasChoices("environments", "env")),
    ] = []
    """At least one, or a dataset."""
    algorithm: AlgorithmConfig = AlgorithmConfig()
    teacher: Teacher | None = None
    """Who teaches the environments whose algorithm needs a teacher (`opd`, `sft`)."""
    max_steps: Annotated[int, Field(ge=1, le=STEPS_MAX)] = 100
    """Optimizer steps after which the run is complete."""
    batch_size: Annotated[int, Field(ge=1, le=BATCH_MAX)] = 128
    """Rollouts and rows of datasets a step; with environments, a multiple of `rollouts_per_example`."""
    rollouts_per_example: Annotated[int, Field(ge=1, le=GROUP_MAX)] = 8
    """Size of a group: rollouts of one task, whose rewards are compared."""
    max_inflight_rollouts: Annotated[int, Field(ge=1, le=BATCH_MAX * 4)] | None = None
    """At most so many rollouts are under way at once; fewer while the engines queue (see training). Default: one batch."""
    oversampling_factor: Annotated[float, Field(ge=1, le=8)] | None = None
    """The same as a multiple of `batch_size`; one of the two, not both."""
    max_off_policy_steps: Annotated[int, Field(ge=0, le=1024)] = 8
    """Bound on staleness: from the dispatch of a group to the step that trains on it. 0 is synchronous."""
    learning_rate: Annotated[float, Field(gt=0, le=1)] = 1e-4
    """Of AdamW."""
    lora_alpha: Annotated[float, Field(gt=0, le=1024)] = 16.0
    """Scale of the adapter; it acts as `lora_alpha / lora_rank`."""
    lora_rank: Annotated[int, Field(ge=1, le=256)] = 8
    """Rank of the adapter, at most the model's `rankMax`."""
    optimizer: OptimizerConfig = OptimizerConfig()
    max_tokens: Annotated[int, Field(ge=1, le=32_768)] = 512
    """Tokens of one model reply. In a file: under `[sampling]`."""
    temperature: Annotated[float, Field(gt=0, le=5)] = 1.0
    """Of sampling; the trainer's log-probabilities are taken at the same one. In a file: under `[sampling]`."""
    seed: int = 0
    """Of the adapter's first weights, the order of tasks, and sampling."""
    checkpoint_id: str | None = None
    """Begin from another run's checkpoint instead of from the base model."""
    eval: EvalPlan | None = None
    checkpoints: CheckpointPlan = CheckpointPlan()
    adapters: AdapterPlan = AdapterPlan()
    pre_batch_filters: Annotated[list[RolloutFilter], Field(max_length=8)] = []
    """Rollouts that are counted or left out before a batch is cut (see algorithms), as `[[pre_batch_filters]]` tables."""
    failure_pause_fraction: Annotated[float, Field(gt=0, le=1)] = 0.5
    """The run pauses with the reason when more than this share of a window's rollouts fails."""
    pause_on_divergence: bool = False
    """The run pauses when it falls apart, as with a far too large learning rate (see training); else it is told, and goes on."""

    def algorithm_of(self, ref: EnvironmentRef) -> AlgorithmChoice:
        """What turns this environment's rollouts into signals."""
        return ref.algorithm or self.algorithm

    def group_size_of(self, ref: EnvironmentRef) -> int:
        """Rollouts of one task in this environment."""
        return 1 if ref.replay else ref.group_size or self.rollouts_per_example

    def rollouts_per_batch(self) -> int:
        """Places of each batch that rollouts take; rows of datasets take the rest."""
        rollouts, rows = (sum(ref.ratio for ref in refs) for refs in (self.environments, self.datasets))
        if not rollouts or not rows:
            return self.batch_size if rollouts else 0
        return max(1, min(self.batch_size - 1, round(self.batch_size * rollouts / (rollouts + rows))))

    def dataset_names(self) -> list[str]:
        """How logs, charts and records call the datasets; each name once, and no environment's."""
        names: list[str] = []
        for number, ref in enumerate(self.datasets, start=1):
            name = ref.name or ref.id
            names.append(name if name not in {*names, *self.environment_names()} else f"{name} (dataset {number})")
        return names

    def environment_names(self) -> list[str]:
        """How logs and records call the environments, first those that are trained on and then the evaluation plan's."""
        plan = self.eval.environments if self.eval else []
        names: list[str] = []
        for number, ref in enumerate([*self.environments, *plan]):
            name = (ref.name or ref.id) + ("" if number < len(self.environments) else " (eval)")
            names.append(name if name not in names else f"{name} #{number + 1}")
        return names

    @field_validator("environments")
    @classmethod
    def _learns_from_something(cls, environments: list[EnvironmentRef], given: ValidationInfo) -> list[EnvironmentRef]:
        if not environments and not given.data.get("datasets"):
            raise ValueError("there is nothing to learn from; name at least one environment or dataset")
        return environments

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.environments and self.batch_size % self.rollouts_per_example:
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
    """Served name: a base model, or `base:adapter_id`; with `api_base_url`, the model's name there."""
    api_base_url: str | None = None
    api_key_var: str | None = None
    """The secret that holds the key."""
    num_examples: Annotated[int, Field(ge=-1, le=100_000)] = 32
    rollouts_per_example: Annotated[int, Field(ge=1, le=2048)] = 1
    max_tokens: Annotated[int, Field(ge=1, le=32_768)] = 512
    temperature: Annotated[float, Field(ge=0, le=5)] = 1.0
    max_concurrent: Annotated[int, Field(ge=1, le=1024)] = 64
    timeout_minutes: Annotated[int, Field(ge=1, le=1440)] = 120
