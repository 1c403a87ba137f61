"""Rollouts as a person goes through them: the groups of a step, the rollouts of a group, one rollout with its turns and tokens.

Knows rows and stored bodies. Refuses to know the wire's spelling (`schemas_rollouts`) and whose run it may be (`access`). What
a body holds came from a sandbox: a run's own secrets are masked before anything of it is shown.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Any

from controlplane.core.errors import NotFound
from controlplane.pools.bodies import read_record
from controlplane.pools.masking import masker
from controlplane.runs.models import Rollout, RolloutStep, Run

ERRORS_MAX = 5

Record = dict[str, Any]


@dataclass(frozen=True)
class Group:
    """Rollouts of one task that were compared with one another. Rewards are those of rollouts in state ok."""

    group_id: str
    rollouts: list[Rollout]

    @property
    def first(self) -> Record:
        return self.rollouts[0].summary

    @property
    def rewards(self) -> list[float]:
        return [row.reward for row in self.rollouts if row.reward is not None]

    @property
    def reward_mean(self) -> float | None:
        return fmean(self.rewards) if self.rewards else None

    @property
    def reward_std(self) -> float | None:
        return pstdev(self.rewards) if self.rewards else None


@dataclass(frozen=True)
class StepRollouts:
    """`tags` are all that the step has, with how many rollouts each; groups are a page of those of the tag asked for."""

    tags: dict[str, int]
    groups: list[Group]
    groups_count: int
    rollouts_count: int
    states: dict[str, int]
    errors: list[tuple[str, int]]


def step_rollouts(run: Run, *, step: int, tag: str, offset: int, limit: int) -> StepRollouts:
    """Groups in the order of their first rollout; the commonest errors of the whole step."""
    steps = list(RolloutStep.objects.filter(run=run, step=step).order_by("created_at", "id"))
    rows = list(Rollout.objects.filter(rollout_step__in=[one for one in steps if one.tag == tag]).order_by("position"))
    groups: dict[str, list[Rollout]] = {}
    for row in rows:
        groups.setdefault(row.summary["group_id"], []).append(row)
    page = list(groups.items())[offset : offset + limit]
    errors = Counter(row.summary["error"] for row in rows if row.summary.get("error"))
    return StepRollouts(
        tags={one.tag: one.rollouts_count for one in steps},
        groups=[Group(group_id, members) for group_id, members in page],
        groups_count=len(groups),
        rollouts_count=len(rows),
        states=dict(Counter(row.state for row in rows)),
        errors=errors.most_common(ERRORS_MAX),
    )


def rollout_record(run: Run, row: Rollout) -> Record:
    """The whole stored record of a rollout; the summary wins where both know something."""
    record = read_record(row.rollout_step.body_key, row.position)
    return masker(run.sealed_secrets)(record | row.summary)


@dataclass(frozen=True)
class Stream:
    """One branch of a trace as it was trained on: lists of equal length. `calls[i]` is the model call, counted from 0 in the
    trace, whose prompt or answer token i is; `sampled[i]` tells the two apart; a log-probability stands where it was sampled."""

    token_ids: list[int]
    sampled: list[bool]
    logprobs: list[float | None]
    calls: list[int]


def stream_at(record: Record, *, trace: int, branch: int) -> tuple[Stream, bool]:
    """A stream by its numbers, and whether it was trained on. Raises NotFound for numbers that the rollout does not have."""
    traces = record.get("traces") or []
    branches = (traces[trace].get("branches") or []) if trace < len(traces) else []
    if branch >= len(branches):
        raise NotFound(
            f"The rollout has no token stream {branch} in trace {trace}.",
            hint="Token ids are recorded of training rollouts; evaluations call the chat route, which has none.",
        )
    return stream_of(traces[trace], branch), bool(branches[branch]["trained"])


def stream_of(trace: Record, branch: int) -> Stream:
    """A branch put together from the calls that it consists of. Empty where the record holds none of its tokens."""
    stream = Stream([], [], [], [])
    for number, call in enumerate(trace.get("calls") or []):
        if call.get("branch") != branch:
            continue
        observed = call["prompt_ids"][call["start"] :]
        _extend(stream, observed, [None] * len(observed), call=number, sampled=False)
        _extend(stream, call["token_ids"], call["logprobs"], call=number, sampled=True)
    return stream


def _extend(stream: Stream, tokens: Sequence[int], logprobs: Sequence[float | None], *, call: int, sampled: bool) -> None:
    stream.token_ids.extend(tokens)
    stream.logprobs.extend(logprobs)
    stream.sampled.extend([sampled] * len(tokens))
    stream.calls.extend([call] * len(tokens))
