"""A rollout and its group, from dispatch to account.

Knows what is recorded of one rollout and what a group is. Refuses to know how rollouts are driven and when they are trained.
"""

from dataclasses import dataclass, field
from typing import Literal

from trainer.algorithms import Signals
from trainer.contracts.rollouts import TraceReport
from trainer.orchestrator.proxy.sessions import Call
from trainer.orchestrator.rollouts.branches import Branch

RolloutState = Literal["ok", "failed", "incomplete", "deadline", "cancelled", "stale", "infrastructure", "filtered"]
TENANT_FAULTS: frozenset[RolloutState] = frozenset({"failed", "incomplete", "deadline"})
"""Failures of the environment's own making: masked and billed, since their tokens were spent on the tenant's behalf."""
BILLED: frozenset[RolloutState] = TENANT_FAULTS | {"filtered"}
"""Billed although nothing was trained on them."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One seat's trace: what the runner claims (`report`) beside what the proxy saw (`calls`)."""

    report: TraceReport
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class RolloutOutcome:
    """How one rollout ended. `reward` is a number for states ok and filtered alone. `error` names module and line where there
    is one, or what a filter has found."""

    state: RolloutState
    reward: float | None = None
    rewards: dict[str, float | None] = field(default_factory=dict)
    metrics: dict[str, float] = field(default_factory=dict)
    turns: int = 0
    stop: str | None = None
    error: str | None = None
    traces: tuple[Trace, ...] = ()

    @property
    def calls(self) -> list[Call]:
        return [call for trace in self.traces for call in trace.calls]


@dataclass(frozen=True, slots=True)
class Lesson:
    """One branch that is trained on, and what its tokens are told."""

    branch: Branch
    signals: Signals

    @property
    def has_weight(self) -> bool:
        """Whether any component takes any token; without one the trainer has nothing to divide by."""
        signals = self.signals
        return any(any(stream or ()) for stream in (signals.rl_weights, signals.ce_weights, signals.ref_kl_weights))


@dataclass(slots=True)
class Rollout:
    """Times are seconds of the event loop's clock. `outcome` is None while the rollout is in flight; `lessons` are there once
    its group has been scored. `broken_prefixes` counts the turns that began a new branch because their history had changed,
    `left_out` the branches that are too short or too long to be trained on."""

    rollout_id: str
    group_id: str
    environment: str
    task: int
    task_key: str
    preview: str
    version: int
    started_s: float
    ended_s: float | None = None
    outcome: RolloutOutcome | None = None
    advantage: float | None = None
    lessons: tuple[Lesson, ...] = ()
    broken_prefixes: int = 0
    left_out: int = 0
    number: int = 0
    """Which rollout of its task it is, in an evaluation."""

    @property
    def valid(self) -> bool:
        return self.outcome is not None and self.outcome.state == "ok"

    @property
    def duration_s(self) -> float:
        return 0.0 if self.ended_s is None else self.ended_s - self.started_s


@dataclass(slots=True)
class Group:
    """Rollouts of one task, all dispatched on one policy version: the unit of staleness and of advantage. `policy` is the
    engine name of who made them: that version, or a frozen generator. `valid_min` is the smallest number of valid rollouts
    that they can be compared with."""

    group_id: str
    environment: str
    task: int
    version: int
    rollouts: list[Rollout]
    policy: str = ""
    valid_min: int = 2
    hint: str = ""
    """The task's own, for the algorithm alone."""
    scoring_s: float = 0.0
    """How long the group's own rewards and the advantages took, once every member was home."""
    doomed: bool = False
    """Too old to be trained; waits only for its cancelled rollouts to come home."""

    @property
    def complete(self) -> bool:
        return all(rollout.outcome is not None for rollout in self.rollouts)

    @property
    def valid(self) -> list[Rollout]:
        return [rollout for rollout in self.rollouts if rollout.valid]

    @property
    def teaches(self) -> bool:
        """Whether any token of any lesson is pulled anywhere."""
        return any(lesson.signals.teaches for rollout in self.valid for lesson in rollout.lessons)

    @property
    def is_worth_scoring(self) -> bool:
        return not self.doomed and len(self.valid) >= self.valid_min

    @property
    def inflight(self) -> list[Rollout]:
        return [rollout for rollout in self.rollouts if rollout.outcome is None]


@dataclass(frozen=True, slots=True)
class Accounted:
    """The final word on one dispatched rollout; every one gets exactly one of these. What was trained on, evaluated, failed by
    the environment's own making or filtered by its owner's wish is billed; what we dropped or broke is free."""

    rollout: Rollout
    state: RolloutState
    trained: bool
    staleness: int
    billed: bool
