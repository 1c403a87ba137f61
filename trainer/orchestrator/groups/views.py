"""A group as its algorithm sees it, and the way of the signals back to the rollouts.

Knows which traces and branches are trained on. Refuses to know what an algorithm does with them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from trainer.algorithms import GroupView, RolloutSignals, RolloutView, SeatView
from trainer.orchestrator.rollouts.branches import Branch, fits, merge_calls
from trainer.orchestrator.rollouts.rollout import Group, Lesson, Rollout, RolloutOutcome, Trace


@dataclass(frozen=True, slots=True)
class Seat:
    """One trainable trace with the branches that can be trained on."""

    trace: Trace
    branches: tuple[Branch, ...]


class GroupStudy:
    """The valid rollouts of a group, taken apart once. `has_group_rewards`: the rollout's reward stands for each of its seats,
    since the environment has compared rollouts as wholes."""

    def __init__(self, group: Group, *, has_group_rewards: bool):
        self._group = group
        self._has_group_rewards = has_group_rewards
        self._seats = [(rollout, _seats(rollout)) for rollout in group.valid]

    def view(self) -> GroupView:
        rollouts = tuple(self._rollout_view(rollout, seats) for rollout, seats in self._seats)
        return GroupView(self._group.environment, self._group.task, self._group.policy, rollouts, self._group.hint)

    def teach(self, signals: Sequence[RolloutSignals]) -> None:
        """Give each rollout its lessons."""
        for (rollout, seats), told in zip(self._seats, signals, strict=True):
            rollout.advantage = told.advantage
            rollout.lessons = tuple(
                Lesson(branch, stream)
                for seat, streams in zip(seats, told.seats, strict=True)
                for branch, stream in zip(seat.branches, streams, strict=True)
            )

    def _rollout_view(self, rollout: Rollout, seats: tuple[Seat, ...]) -> RolloutView:
        reward = reward_of(rollout)
        own = len(seats) > 1 and not self._has_group_rewards
        views = tuple(
            SeatView(
                seat.trace.report.agent,
                seat.trace.report.reward if own and seat.trace.report.reward is not None else reward,
                seat.branches,
            )
            for seat in seats
        )
        return RolloutView(rollout.rollout_id, reward, completion_tokens(rollout), views)


def reward_of(rollout: Rollout) -> float:
    assert rollout.outcome is not None and rollout.outcome.reward is not None
    return rollout.outcome.reward


def completion_tokens(rollout: Rollout) -> int:
    return sum(call.output_tokens for call in rollout.outcome.calls) if rollout.outcome else 0


def _seats(rollout: Rollout) -> tuple[Seat, ...]:
    """Of a rollout's trainable traces, those with something to train on. Counts what is left out on the rollout."""
    outcome: RolloutOutcome | None = rollout.outcome
    seats, broken, left_out = [], 0, 0
    for trace in outcome.traces if outcome else ():
        if not trace.report.trainable:
            continue
        merged = merge_calls(call for call in trace.calls if call.route == "generate")
        fitting = tuple(branch for branch in merged.branches if fits(branch))
        broken += merged.broken
        left_out += len(merged.branches) - len(fitting)
        seats.append(Seat(trace, fitting))
    rollout.broken_prefixes, rollout.left_out = broken, left_out
    return tuple(seats)
