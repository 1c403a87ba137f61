"""HTTP of the environment runner on `run.sock`, and what comes back from it.

  GET    /health                      -> RunnerHealth
  GET    /tasks?cursor=N&limit=M      -> TaskPage
  POST   /rollouts                    RolloutRequest -> JSON lines of RolloutAlive, then one RolloutEnd
  DELETE /rollouts/{rollout_id}       -> {"cancelled": bool}
  POST   /groups/score                GroupScoreRequest -> GroupScores   (group rewards of the environment, where declared)
  POST   /inspection                  for release checks: trainer.contracts.release_checks

The runner shares its process with tenant code: everything it says is hostile input. These types carry the limits.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from trainer.contracts.base import Sha256, Wire
from trainer.contracts.interfaces import Interface

TEXT_MAX = 2_000
TRACES_MAX = 64
REWARDS_MAX = 64
HUB_WHEELS_MAX = 16
RUN_SOCKET = "run.sock"
MODEL_SOCKET = "model.sock"
RUNNER_CONFIG = "config.json"
MODEL_PORT = 8000
SESSION_HEADER = "x-session-id"
"""On every model call: the trace that it belongs to."""
SEAT_HEADER = "x-rootstock-seat"
"""On the model calls of an agent that the policy does not play: its name."""

Text = Annotated[str, Field(max_length=TEXT_MAX)]
Score = Annotated[float, Field(ge=-1e6, le=1e6)]
Name = Annotated[str, Field(max_length=128)]


class RunnerLimits(Wire):
    """Time-outs and limits that we set on every seat; the library's own defaults are unlimited."""

    max_turns: Annotated[int, Field(ge=1, le=1000)] = 16
    max_total_tokens: Annotated[int, Field(ge=1)] = 32_768
    setup_s: float = 60.0
    rollout_s: float = 300.0
    scoring_s: float = 30.0
    load_s: float = 60.0


class SeatModel(Wire):
    """Who plays an agent instead of the policy."""

    model: Name
    """Engine name."""
    temperature: Annotated[float, Field(ge=0, le=5)]
    max_tokens: Annotated[int, Field(ge=1)]


class RunnerConfig(Wire):
    """Written to config.json in the bound folder before the runner starts."""

    environment: str
    """Import name of the environment's package, e.g. `digit_rules`."""
    interface: Interface = "taskset"
    held_out: bool = False
    """List the rows that are kept for evaluations, where the package has such rows (`eval_dataset` of an older one)."""
    args: dict[str, Any] = {}
    renderer: dict[str, Any]
    tokenizer_path: str
    limits: RunnerLimits = RunnerLimits()
    base_url: str = f"http://127.0.0.1:{MODEL_PORT}/v1"
    """Where model calls go: in a sandbox always to the forwarder of `model.sock`, whose permission is the socket itself."""
    api_key_var: str = "ROOTSTOCK_MODEL_KEY"
    seats: dict[Name, SeatModel] = {}
    """Agents that the policy does not play."""
    secrets: dict[str, str] = Field(default={}, repr=False)
    """The team's own, as environment variables of tenant code. The runner removes the file once it has read it."""
    secret_files: dict[str, str] = Field(default={}, repr=False)
    """Contents in base64 by the name of the variable that shall hold the file's path."""


class TenantError(Wire):
    """An error with the innermost frame of the tenant's own code, where there is one."""

    type: Name
    message: Text
    module: Annotated[str, Field(max_length=512)] | None = None
    line: int | None = None
    function: Name | None = None


class RunnerHealth(Wire):
    status: Literal["loading", "ready", "broken"]
    error: TenantError | None = None
    live: int = 0
    tasks_count: int | None = None
    group_rewards: Annotated[list[Name], Field(max_length=REWARDS_MAX)] = []
    """Those that the environment declares."""


class TaskEntry(Wire):
    index: int
    key: Annotated[str, Field(max_length=512)]
    preview: Text = ""
    hint: Text = ""
    """What would help with the task (`hint` of its data), for algorithms that let the policy teach itself. The policy that makes
    the rollouts never sees it."""


class TaskPage(Wire):
    tasks: list[TaskEntry]
    cursor: int | None


class RolloutSampling(Wire):
    temperature: Annotated[float, Field(ge=0, le=5)] = 1.0
    max_tokens: Annotated[int, Field(ge=1)] = 512
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0


class RolloutRequest(Wire):
    """`policy` is the engine name that the model calls must carry; the proxy refuses any other."""

    rollout_id: Name
    task: int
    policy: str
    client: Literal["train", "eval"] = "train"
    sampling: RolloutSampling = RolloutSampling()
    deadline_s: Annotated[float, Field(gt=0, le=86_400)] = 300.0


class RolloutAlive(Wire):
    event: Literal["alive"] = "alive"
    turns: list[int] = []


class TraceReport(Wire):
    """One seat's trace. `reward` is None unless `state` is ok. Token ids are not here: the proxy recorded them."""

    trace_id: Name
    agent: Name = "agent"
    trainable: bool = True
    state: Literal["ok", "failed", "incomplete"]
    stop: Name | None = None
    reward: Score | None = None
    rewards: Annotated[dict[Name, Score | None], Field(max_length=REWARDS_MAX)] = {}
    metrics: Annotated[dict[Name, Score], Field(max_length=REWARDS_MAX)] = {}
    turns: Annotated[int, Field(ge=0)] = 0
    input_tokens: Annotated[int, Field(ge=0)] = 0
    output_tokens: Annotated[int, Field(ge=0)] = 0
    """As the model's server told the library. Never billed: the proxy counts by itself."""
    truncated: bool = False
    scoring_s: Annotated[float, Field(ge=0)] = 0.0
    """How long the environment took to score the trace."""
    errors: Annotated[list[TenantError], Field(max_length=16)] = []
    messages: Annotated[list[dict[str, Any]], Field(max_length=512)] = []
    """What the page shows: role, content, tool calls. Never trained on."""


class RolloutEnd(Wire):
    event: Literal["end"] = "end"
    state: Literal["ok", "failed", "incomplete", "deadline", "cancelled"]
    traces: Annotated[list[TraceReport], Field(max_length=TRACES_MAX)] = []
    errors: Annotated[list[TenantError], Field(max_length=16)] = []
    fault: Literal["none", "tenant", "infrastructure"] = "none"
    """Whose failure it was. Both are masked; only infrastructure failures are free."""


class MemberTrace(Wire):
    agent: Name
    messages: list[dict[str, Any]] = []
    """As in `TraceReport`."""


class GroupMember(Wire):
    """A valid rollout as a group reward sees it. `rewards` are the parts of `reward`, unweighted."""

    rollout_id: Name
    reward: Score
    rewards: dict[Name, Score | None] = {}
    metrics: dict[Name, Score] = {}
    completion_tokens: Annotated[int, Field(ge=0)]
    """How many the model wrote, all seats and turns together."""
    traces: list[MemberTrace] = []

    @property
    def reply(self) -> str:
        """The last thing that the first seat said; empty where it said nothing."""
        said = [
            message.get("content") for trace in self.traces[:1] for message in trace.messages if message["role"] == "assistant"
        ]
        return said[-1] if said and isinstance(said[-1], str) else ""


class GroupScoreRequest(Wire):
    task: int
    names: list[Name]
    """Of `RunnerHealth.group_rewards`."""
    members: list[GroupMember]


class GroupScores(Wire):
    scores: dict[Name, list[Score]]
    """By group reward, one per member in order."""


class HubWheel(Wire):
    """A wheel of another environment that a release stands on."""

    address: str
    """As requirements spell it, with its digest. It names the wheel; nothing is fetched from it."""
    wheel_url: str
    wheel_filename: str
    wheel_sha256: Sha256


class ReleaseSpec(Wire):
    """What a host needs to bring a release up in a sandbox."""

    release_id: str
    environment: str
    """`owner/name`"""
    version: str
    module: str
    """Import name of the wheel's package."""
    wheel_url: str
    wheel_filename: str
    wheel_sha256: Sha256
    requirements_lock: str = ""
    allows_prereleases: bool = False
    """Whether its dependencies may be pre-releases (contracts.packages), where no lock says which."""
    withheld: str = ""
    """Why nobody may install it; '' for one that may be."""
    hub_wheels: Annotated[list[HubWheel], Field(max_length=HUB_WHEELS_MAX)] = []
    """All that it and these require by address: a host takes no other address."""
