"""What an algorithm is shown of a group, and where its signals end up."""

from tests.factories.rollouts import make_call, make_group, make_outcome
from trainer.algorithms import RolloutSignals, Signals
from trainer.contracts.rollouts import TraceReport
from trainer.orchestrator.groups.views import GroupStudy
from trainer.orchestrator.rollouts.rollout import RolloutOutcome, Trace


def seat(agent: str, reward: float | None, *calls, trainable: bool = True) -> Trace:
    return Trace(TraceReport(trace_id=agent, agent=agent, state="ok", reward=reward, trainable=trainable), calls)


def game(group, reward: float = 0.25):
    """Two seats that learn, a user who does not; the second seat's history was rewritten once."""
    first = seat("first", 1.0, make_call((1, 2), (3,), output_tokens=1))
    second = seat("second", -0.5, make_call((4,), (5, 6)), make_call((4, 9), (7,), output_tokens=1))
    user = seat("user", None, make_call((8,), (8,), output_tokens=1), trainable=False)
    group.rollouts[0].outcome = RolloutOutcome("ok", reward, traces=(first, second, user))
    return group


def test_seats_have_their_own_rewards_and_only_those_that_learn_are_shown():
    (view,) = GroupStudy(game(make_group(size=1)), has_group_rewards=False).view().rollouts
    assert [(one.agent, one.reward, len(one.streams)) for one in view.seats] == [("first", 1.0, 1), ("second", -0.5, 2)]
    assert view.reward == 0.25


def test_a_group_reward_stands_for_every_seat():
    (view,) = GroupStudy(game(make_group(size=1)), has_group_rewards=True).view().rollouts
    assert [one.reward for one in view.seats] == [0.25, 0.25]


def test_a_single_seat_has_the_rollouts_reward():
    group = make_group(size=1)
    group.rollouts[0].outcome = make_outcome(0.5)
    (view,) = GroupStudy(group, has_group_rewards=False).view().rollouts
    assert [one.reward for one in view.seats] == [0.5]


def test_failed_rollouts_are_not_shown_and_the_rest_keeps_the_order_of_dispatch():
    group = make_group(size=3)
    for rollout, outcome in zip(
        group.rollouts, (make_outcome(0.1), make_outcome(state="failed"), make_outcome(0.3)), strict=True
    ):
        rollout.outcome = outcome
    view = GroupStudy(group, has_group_rewards=False).view()
    assert [one.rollout_id for one in view.rollouts] == [group.rollouts[0].rollout_id, group.rollouts[2].rollout_id]


def test_each_stream_gets_its_own_signals_and_what_does_not_fit_is_counted():
    group = game(make_group(size=1))
    outcome = group.rollouts[0].outcome
    unfit = seat("third", 0.0, make_call((), (5,)))
    group.rollouts[0].outcome = RolloutOutcome("ok", 0.25, traces=(*outcome.traces, unfit))
    study = GroupStudy(group, has_group_rewards=False)
    told = [Signals(ce_weights=[float(number)]) for number in range(3)]
    study.teach([RolloutSignals(0.5, ((told[0],), (told[1], told[2]), ()))])
    rollout = group.rollouts[0]
    assert [(lesson.branch.token_ids, lesson.signals) for lesson in rollout.lessons] == [
        ([1, 2, 3], told[0]),
        ([4, 5, 6], told[1]),
        ([4, 9, 7], told[2]),
    ]
    assert (rollout.advantage, rollout.broken_prefixes, rollout.left_out) == (0.5, 1, 1)
