"""The kinds of a run's event log, who can be at fault, the meters, and the states of a run. One enum each."""

from enum import StrEnum


class RunState(StrEnum):
    """As spelled on the wire. Transitions live with the run's model."""

    QUEUED = "QUEUED"
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    PAUSING = "PAUSING"
    PAUSED = "PAUSED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    STOPPED = "STOPPED"


TERMINAL_STATES = frozenset({RunState.COMPLETED, RunState.FAILED, RunState.STOPPED})


class EventKind(StrEnum):
    STATE = "state"
    """The run changed state; payload {"state", "reason"}."""
    LOG = "log"
    """One line; payload {"component", "level", "message"}."""
    STEP = "step"
    """An optimizer step was committed; payload {"metrics": {name: number}, "version", "adapter_digest"}."""
    EVAL = "eval"
    """An evaluation finished; payload {"environment", "reward_mean", "rollouts", "metrics"}."""
    CHECKPOINT = "checkpoint"
    VERSION = "version"
    """An adapter version is served; payload {"version", "adapter_digest", "requests_in_flight", "load_s"}."""
    INCIDENT = "incident"
    """Something failed and was handled; payload {"code", "message", "component"}. `component` is who failed, the message says
    what happened and what was done about it. A code that ends in `_over` says that the failure of the same code is over."""
    WARNING = "warning"


class Component(StrEnum):
    """Whose line or incident it is, and what a run that stands still is waiting for."""

    API = "api"
    QUEUE = "queue"
    """A place on the pool or the trainer."""
    ORCHESTRATOR = "orchestrator"
    TRAINER = "trainer"
    ENGINE = "engine"
    SANDBOX = "sandbox"
    """The box around an environment, from its start to its end."""
    ENVIRONMENT = "environment"
    """The team's own code."""
    JUDGE = "judge"
    """Scoring of a whole group, once its rollouts are home."""
    EVAL = "eval"
    WEB = "web"
    INTERNAL = "internal"
    WORKER = "worker"
    BEAT = "beat"
    DATABASE = "database"


class Meter(StrEnum):
    """What is measured and billed. Quantities are integers in the unit that the name ends with."""

    TRAINING_TOKENS = "training_tokens"
    ROLLOUT_INPUT_TOKENS = "rollout_input_tokens"
    ROLLOUT_OUTPUT_TOKENS = "rollout_output_tokens"
    INFERENCE_INPUT_TOKENS = "inference_input_tokens"
    INFERENCE_OUTPUT_TOKENS = "inference_output_tokens"
    SANDBOX_SECONDS = "sandbox_seconds"
    JUDGE_CALLS = "judge_calls"


class FailureCode(StrEnum):
    """Why a run or evaluation ended or paused; the text beside it says what to do."""

    ENVIRONMENT_BROKEN = "environment_broken"
    DATASET_REFUSED = "dataset_refused"
    """The model can take too few of a dataset's rows."""
    ENVIRONMENT_FAILING = "environment_failing"
    """More than the allowed share of rollouts failed by the environment's own making."""
    ROLLOUTS_LOST = "rollouts_lost"
    """More than the allowed share of rollouts failed by ours."""
    SERVICE_LOST = "service_lost"
    """A process of the control plane ended without being asked to and was started again."""
    RUNNER_LOST = "runner_lost"
    TRAINER_REFUSED = "trainer_refused"
    TRAINER_UNREACHABLE = "trainer_unreachable"
    INFERENCE_UNREACHABLE = "inference_unreachable"
    MODEL_REFUSED = "model_refused"
    """An external model's server refuses the key, the model's name or the account."""
    NON_FINITE = "non_finite"
    DIVERGING = "diverging"
    """The run falls apart; also an incident's code, where the run goes on."""
    STALLED = "stalled"
    OUT_OF_FUNDS = "out_of_funds"
    LEASE_LOST = "lease_lost"
    ATTEMPTS_EXHAUSTED = "attempts_exhausted"
    STOPPED_BY_USER = "stopped_by_user"
    EXTERNAL_FAILED = "external_failed"
    """The trainer of a run that is trained elsewhere says so, or says nothing any more."""
    INTERNAL = "internal"
