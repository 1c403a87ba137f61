"""HTTP between a leased process and the control plane: `/internal/v1`, bearer = attempt token.

  GET  /attempt      -> AttemptSpec                     what to do
  GET  /replays/{environment}/{step} -> ReplayPage      of a run that `replays` names for that environment
  GET  /releases/{release_id}/values -> SandboxValues   what its sandbox gets, as it is now: asked for before each start
  GET  /datasets/{index} -> the file                    that `run.datasets` names there
  POST /heartbeat    Heartbeat -> HeartbeatReply        extends the lease; answers the desired state
  POST /events       EventBatch -> {"accepted": n}      run event log, idempotent by (attempt, sequence)
  POST /usage        UsageBatch -> UsageReceipt         meter events, idempotent by (kind, sequence) inside subject and segment
  POST /rollouts     RolloutBatch -> {"accepted": n}    one step's rollouts: bodies and summaries, idempotent by (step, tag)
  POST /versions     VersionReport -> 204               an adapter version exists and is served
  POST /checkpoints  CheckpointReport -> 204
  PUT  /exports/{name}/{part}?sha256=&size_bytes= -> 204   one part of a file of an export, both numbers the whole file's
  POST /finish       Finish -> 204                      ends the attempt, gives the lease back

The attempt token is bound to (subject, attempt, fencing token) and is stored hashed. After a newer attempt started, every call
answers 409 `stale_lease`: the caller stops at once and writes nothing more anywhere.
"""

import base64
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from trainer.contracts.adapters import FileEntry
from trainer.contracts.base import PublicId, Sha256, Wire
from trainer.contracts.catalogue import BaseModelSpec
from trainer.contracts.datasets import DatasetSpec
from trainer.contracts.events import EventKind, FailureCode, Meter
from trainer.contracts.exports import ExportOrder, FileName
from trainer.contracts.interfaces import Interface
from trainer.contracts.release_checks import LIST_MAX, Needs, SampleRollout, SplitSeen, TaskProblem
from trainer.contracts.rollouts import ReleaseSpec
from trainer.contracts.run_config import EvalConfig, RunConfig

ATTEMPT_TOKEN_VARIABLE = "ROOTSTOCK_ATTEMPT_TOKEN"
INTERNAL_URL_VARIABLE = "ROOTSTOCK_INTERNAL_URL"
"""`http://127.0.0.1:PORT` or `unix:/path/to.sock`; `/internal/v1` is appended."""

SubjectKind = Literal["run", "eval", "release", "export"]


class PoolSpec(Wire):
    """Where the shared machines are. `inference_urls` lists every replica that must load a version; `pool_url` is where
    rollouts go."""

    name: str
    trainer_url: str
    pool_url: str
    inference_urls: list[str]
    artifact_root: str
    """Absolute folder that trainer, engines and orchestrators share."""


class ServedModel(Wire):
    """A model that is not the run's own policy: the engine name that answers, and, for an adapter version, where its files
    are."""

    engine_name: str
    adapter_path: str | None = None
    adapter_digest: Sha256 | None = None


class ExternalModel(Wire):
    """A model behind somebody else's API: `model` is its name there. `base_url` is what `/chat/completions` is appended to. The
    key is for the orchestrator alone and never in `AttemptSpec.secrets`. `may_be_private`: the address may be in our network."""

    base_url: str
    model: str
    api_key: str = Field(default="", repr=False)
    may_be_private: bool = False


class ReplayStep(Wire):
    step: int
    rollouts_count: Annotated[int, Field(ge=0)]


class ReplaySpec(Wire):
    """An ended run whose recorded rollouts are learnt from, step by step in order."""

    run_id: PublicId
    steps: list[ReplayStep]


class ReplayPage(Wire):
    """The good rollouts that one environment replays of one step, each as its record in `RolloutBatch`."""

    rollouts: list[dict[str, Any]]


class SandboxValues(Wire):
    """What the team has set for one environment, by names of environment variables; no name stands in two of them."""

    variables: dict[str, str] = {}
    secrets: dict[str, str] = Field(default={}, repr=False)
    files: dict[str, str] = Field(default={}, repr=False)
    """Secrets that are files, in base64; the variable holds the path of the file."""

    def secret_texts(self) -> list[str]:
        """Whatever must be masked in what the sandbox brings back."""
        contents = (base64.b64decode(content).decode(errors="replace") for content in self.files.values())
        return [*self.secrets.values(), *self.files.values(), *contents]


class RunPosition(Wire):
    """Where a run is in its data after a step: tasks taken by environment, rows by dataset, what each environment's algorithm
    remembers and its curriculum knows. For orchestrators; nobody else reads it."""

    cursors: dict[str, int] = {}
    dataset_cursors: dict[str, int] = {}
    algorithm_state: dict[str, dict[str, float]] = {}
    curricula: dict[str, dict[str, Any]] = {}


class AttemptSpec(Wire):
    kind: SubjectKind
    subject_id: PublicId
    team_id: PublicId
    attempt: Annotated[int, Field(ge=1)]
    segment: Annotated[int, Field(ge=1)]
    fencing_token: Annotated[int, Field(ge=1)]
    lease_s: float
    base_model: BaseModelSpec
    pool: PoolSpec | None = None
    run: RunConfig | None = None
    eval: EvalConfig | None = None
    served_model: ServedModel | None = None
    external: ExternalModel | None = None
    """Of an evaluation: who answers instead of the pool."""
    done: list[tuple[int, int]] = []
    """Of an evaluation: the (task, number of the rollout) pairs that earlier attempts have settled."""
    releases: list[ReleaseSpec]
    """One per entry of `run.environments` (then of `run.eval.environments`), in order; one for an eval or a release."""
    teachers: list[ServedModel | None] = []
    """One per entry of `run.environments`, None where nobody teaches; empty when there is no teacher at all."""
    seats: list[dict[str, ServedModel]] = []
    """One per entry of `releases`: which models play the agents that the policy does not; empty when it plays them all."""
    replays: list[ReplaySpec | None] = []
    """One per entry of `run.environments`, None where rollouts are made; empty when nothing is replayed."""
    datasets: list[DatasetSpec] = []
    """One per entry of `run.datasets`."""
    export: ExportOrder | None = None
    init_from: str | None = None
    position: RunPosition | None = None
    """Of a run that is a fork: where the other one was at the checkpoint `init_from`."""
    resume_step: int = 0
    """Newest step whose report the control plane holds."""
    secrets: dict[str, str] = Field(default={}, repr=False)
    """The run's or evaluation's own, for all of its sandboxes. They win over what is set for an environment."""
    sandbox_backend: Literal["auto", "bubblewrap", "docker"] = "auto"


class Heartbeat(Wire):
    step: int = 0
    phase: str = ""
    """What the process is doing, in a few words a person can read on the run page."""
    inflight: int = 0


class HeartbeatReply(Wire):
    desired: Literal["run", "pause", "stop"]
    reason: str = ""
    code: FailureCode | None = None
    lease_s: float


class EventIn(Wire):
    """`sequence` counts from 1 inside an attempt; a repeated one is ignored."""

    sequence: Annotated[int, Field(ge=1)]
    kind: EventKind
    step: int | None = None
    at: datetime
    payload: dict[str, Any]


class EventBatch(Wire):
    events: Annotated[list[EventIn], Field(max_length=1000)]


class UsageIn(Wire):
    """`sequence` is the step, request or minute that the fact belongs to, so that a replay has the same identity."""

    meter: Meter
    sequence: Annotated[str, Field(min_length=1, max_length=128)]
    quantity: Annotated[int, Field(ge=0, le=10**15)]
    at: datetime


class UsageBatch(Wire):
    events: Annotated[list[UsageIn], Field(max_length=10_000)]


class UsageReceipt(Wire):
    inserted: int
    duplicates: int


class RolloutSummary(Wire):
    rollout_id: str
    group_id: str
    environment: str
    task: int
    task_key: str = ""
    rollout_number: int = 0
    """Which rollout of its task it is, in an evaluation."""
    task_preview: str = ""
    """The task in a few words that a person can read; `preview` is what the policy said last."""
    state: Literal["ok", "failed", "incomplete", "deadline", "cancelled", "stale", "infrastructure", "filtered"]
    reward: float | None
    rewards: dict[str, float | None] = {}
    metrics: dict[str, float] = {}
    advantage: float | None = None
    trained: bool
    policy_version_min: int
    policy_version_max: int
    staleness: int = 0
    turns: int
    input_tokens: int
    output_tokens: int
    billed: bool
    duration_s: float
    stop: str | None = None
    error: str | None = None
    preview: str = ""


class RolloutBatch(Wire):
    """All rollouts accounted between the commit of step-1 and that of `step`. `body_zstd_b64` is zstd JSON lines, one full
    record per rollout (messages, and per turn: token ids, log-probs, mask, engine name, adapter digest, usage)."""

    step: int
    tag: Annotated[str, Field(max_length=64)] = "train"
    summaries: list[RolloutSummary]
    body_zstd_b64: str
    body_sha256: Sha256


class VersionReport(Wire):
    version: int
    step: int
    adapter_digest: Sha256
    path: str
    size_bytes: int
    keep: bool
    """Deployable, as `adapters.interval` asks; other versions may be removed once nothing serves them."""


class CheckpointReport(Wire):
    step: int
    path: str
    digest: Sha256
    size_bytes: int
    position: RunPosition | None = None


LOCK_MAX_CHARACTERS = 400_000
"""Some 2,000 pinned packages."""


class Compatibility(Wire):
    """What an environment can be used for and what it needs, as the check saw it. One that passes needs neither network nor a
    container of its own: the check gives it neither. Of one that does not, only the needs may be known."""

    interface: Interface | None = None
    """What the package was found to define, and is played by ever since: a `Taskset`, or the older `load_environment`. None of
    one that did not come that far, and of an earlier check."""
    agents: Annotated[list[str], Field(max_length=64)]
    trained_agents: Annotated[list[str], Field(max_length=64)]
    """Those whose tokens a run learns from; without any, the environment is for evaluations alone."""
    turns: int
    """Of the agent that took most."""
    calls_tools: bool
    """Whether a tool answered. A canned model calls none of its own accord: false says nothing."""
    group_rewards: Annotated[list[str], Field(max_length=64)] = []
    needs: Needs | None = None
    """None for a release whose check could not ask it."""


class ReleaseVerdict(Wire):
    """What a release build found. `module` and `line` point into the tenant's code where it failed."""

    ok: bool
    summary: str
    module: str | None = None
    line: int | None = None
    log: str = ""
    tasks_count: int | None = None
    duration_s: float
    requirements_lock: str = Field(default="", max_length=LOCK_MAX_CHARACTERS)
    """The extra dependencies that were installed, each with its version and hashes; runs install exactly these."""
    compatibility: Compatibility | None = None
    splits: Annotated[list[SplitSeen], Field(max_length=LIST_MAX)] = []
    problems: Annotated[list[TaskProblem], Field(max_length=LIST_MAX)] = []
    """Of the tasks that were looked at; with any, the release is red."""
    samples: Annotated[list[SampleRollout], Field(max_length=LIST_MAX)] = []
    """Rollouts on a canned model."""


class EvalResult(Wire):
    """Of a pass, or of all passes of an evaluation that went on after a loss. The interval is absent below two examples."""

    reward_mean: float | None
    reward_ci95: tuple[float, float] | None = None
    rollouts: int
    failed: int
    metrics: dict[str, float] = {}


class Finish(Wire):
    outcome: Literal["completed", "failed", "stopped", "paused"]
    code: FailureCode | None = None
    message: str = ""
    detail: dict[str, Any] = {}
    verdict: ReleaseVerdict | None = None
    exported: dict[FileName, FileEntry] | None = None
    """The files of an export, all of whose parts have been sent."""
