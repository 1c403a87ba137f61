"""Groups as algorithms see them, made for tests without an orchestrator."""

from trainer.algorithms import GroupView, RolloutView, SeatView
from trainer.orchestrator.rollouts.branches import Branch


def make_stream(*spans: tuple[int, bool]) -> Branch:
    """A branch of the given spans of (tokens, sampled)."""
    mask = [sampled for count, sampled in spans for _ in range(count)]
    logprobs = [-0.5 if sampled else 0.0 for sampled in mask]
    return Branch(list(range(1, len(mask) + 1)), mask, logprobs, [1.0] * len(mask))


def make_seat(reward: float, agent: str = "agent", *streams: Branch) -> SeatView:
    return SeatView(agent, reward, streams or (make_stream((2, False), (2, True)),))


def make_rollout_view(*seats: SeatView, completion_tokens: int = 2) -> RolloutView:
    reward = sum(seat.reward for seat in seats) / len(seats)
    return RolloutView("r", reward, completion_tokens, seats)


def make_group_view(*rollouts: RolloutView, hint: str = "") -> GroupView:
    return GroupView("digits", 0, "run.v0", rollouts, hint)
