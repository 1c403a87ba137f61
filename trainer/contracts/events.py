"""The kinds of a run's event log, the meters, and the states of a run. One enum each, frozen by a test."""

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
    """Something failed and was handled; payload {"code", "message", "component"}."""
    WARNING = "warning"


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
    ENVIRONMENT_FAILING = "environment_failing"
    """More than the allowed share of rollouts failed."""
    RUNNER_LOST = "runner_lost"
    TRAINER_REFUSED = "trainer_refused"
    TRAINER_UNREACHABLE = "trainer_unreachable"
    INFERENCE_UNREACHABLE = "inference_unreachable"
    NON_FINITE = "non_finite"
    STALLED = "stalled"
    OUT_OF_FUNDS = "out_of_funds"
    LEASE_LOST = "lease_lost"
    ATTEMPTS_EXHAUSTED = "attempts_exhausted"
    STOPPED_BY_USER = "stopped_by_user"
    INTERNAL = "internal"
