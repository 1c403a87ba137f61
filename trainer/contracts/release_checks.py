"""What a release check asks of a runner beyond rollouts, and what is kept of it with the release.

  POST /inspection    InspectionRequest -> Inspection

Like everything that a runner says, an Inspection is hostile input; these types carry the limits.
"""

from typing import Annotated

from pydantic import Field

from trainer.contracts.base import Wire
from trainer.contracts.rollouts import REWARDS_MAX, Name, Score, Text

INSPECTION_S = 90.0
"""For one inspection as a whole: reading every split twice, and the tasks' own checks."""
INSPECTED_TASKS = 8
ROW_BYTES_MAX = 8 << 20
"""Of one task's data as JSON: it travels with each rollout, and a model call is half as large again at most."""
LIST_MAX = 64
UNTRAINED = "no agent of it is trained: it is for evaluations alone"
"""Why an environment that plays cannot be trained on."""
MESSAGES_MAX = 16
MESSAGE_CHARS = 2_000


class InspectionRequest(Wire):
    tasks_per_split: Annotated[int, Field(ge=1, le=LIST_MAX)] = INSPECTED_TASKS
    """The first, the last, and those between at equal distances."""


class TaskProblem(Wire):
    """Why a task is not fit to be played; `field` is of its data, or `load`, `index`, `key` or `validate`."""

    split: Name = ""
    """Empty where the taskset has one."""
    task: int
    field: Name
    message: Text


class SplitSeen(Wire):
    """A value of the setting `split` or `dataset_split` of a taskset's configuration; the whole taskset where it has neither."""

    name: Name = ""
    open_setting: Name = ""
    """That setting, where it takes any text: only the configured value was looked at, and what others there are is unknown."""
    tasks_count: int | None = None
    """None for one without a known end."""
    checked: Annotated[list[int], Field(max_length=LIST_MAX)]
    """Indices of the tasks that were looked at."""


class HarnessFit(Wire):
    """Whether a harness can play the environment here, and whether what it plays can be trained on."""

    harness: Name
    evaluate: bool
    train: bool
    reason: Text = ""
    """Why not, of the first thing that it cannot."""


class Needs(Wire):
    """What the environment's own classes and tasks say that they need."""

    container: bool = False
    network: bool = False
    """Whether a task names destinations, or its tools are served elsewhere. One that reaches out all the same fails its check."""
    tools: Annotated[list[Name], Field(max_length=LIST_MAX)] = []
    """Offered over MCP, as the model sees them."""
    skills: Annotated[list[Name], Field(max_length=LIST_MAX)] = []
    harnesses: Annotated[list[HarnessFit], Field(max_length=LIST_MAX)] = []
    """The one that plays it first."""


class Inspection(Wire):
    splits: Annotated[list[SplitSeen], Field(min_length=1, max_length=LIST_MAX)]
    problems: Annotated[list[TaskProblem], Field(max_length=LIST_MAX)] = []
    needs: Needs = Needs()


class SampleMessage(Wire):
    role: Name
    content: Annotated[str, Field(max_length=MESSAGE_CHARS)]


class SampleRollout(Wire):
    """A rollout of a check, as its page shows it. The canned model says the same to every task."""

    task: int
    preview: Text = ""
    state: Name
    """`ok`, or how it failed."""
    reward: Score | None = None
    rewards: Annotated[dict[Name, Score | None], Field(max_length=REWARDS_MAX)] = {}
    turns: int = 0
    stop: Name | None = None
    error: Text = ""
    messages: Annotated[list[SampleMessage], Field(max_length=MESSAGES_MAX)] = []
    """The last ones, each cut."""


def spread(count: int, wanted: int) -> list[int]:
    """At most `wanted` of `count` indices: the first, the last, and those between at equal distances."""
    if count <= wanted or wanted == 1:
        return list(range(min(count, wanted)))
    return sorted({position * (count - 1) // (wanted - 1) for position in range(wanted)})
