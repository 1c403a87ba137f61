"""echo: grpo on what was sampled, cross-entropy on what was answered."""

from dataclasses import asdict

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.factories.groups import make_group_view, make_rollout_view, make_seat, make_stream
from trainer.algorithms import algorithm_for
from trainer.algorithms.echo import on_observed
from trainer.contracts.run_config import AlgorithmConfig

TWO_TURNS = make_stream((2, False), (2, True), (3, False), (1, True))
ONE_TURN = make_stream((2, False), (2, True))


async def score(algorithm_id, group, **options):
    return await algorithm_for(AlgorithmConfig(id=algorithm_id, options=options)).score(group)


def group():
    return make_group_view(
        make_rollout_view(make_seat(1.0, "agent", TWO_TURNS)), make_rollout_view(make_seat(0.0, "agent", ONE_TURN))
    )


async def test_what_the_environment_says_after_the_first_reply_is_foretold():
    good, bad = await score("echo", group())
    (two_turns,), (one_turn,) = good.seats[0], bad.seats[0]
    assert two_turns.ce_weights == [0, 0, 0, 0, 0.1, 0.1, 0.1, 0]
    assert two_turns.rl_weights == [0, 0, 1, 1, 0, 0, 0, 1]
    assert two_turns.advantages == [0, 0, 0.5, 0.5, 0, 0, 0, 0.5]
    assert one_turn.ce_weights == [0, 0, 0, 0]
    assert one_turn.advantages == [0, 0, -0.5, -0.5]


async def test_alpha_is_the_weight_and_the_rest_is_grpo():
    told, plain = await score("echo", group(), alpha=0.5), await score("grpo", group())
    assert told[0].seats[0][0].ce_weights == [0, 0, 0, 0, 0.5, 0.5, 0.5, 0]
    for with_echo, without in zip(told, plain, strict=True):
        assert asdict(with_echo.seats[0][0]) | {"ce_weights": None} == asdict(without.seats[0][0])


async def test_a_group_that_agrees_still_teaches_what_the_environment_answers():
    seat = make_seat(1.0, "agent", TWO_TURNS)
    told = await score("echo", make_group_view(make_rollout_view(seat), make_rollout_view(seat)))
    plain = await score("grpo", make_group_view(make_rollout_view(seat), make_rollout_view(seat)))
    assert [signals.teaches for signals in told] == [True, True]
    assert [signals.teaches for signals in plain] == [False, False]


@settings(max_examples=40)
@given(st.lists(st.booleans(), max_size=12))
def test_no_token_is_both_sampled_and_foretold_and_none_before_the_first_reply(mask):
    weights = on_observed(make_stream(*((1, sampled) for sampled in mask)), 0.1)
    first = mask.index(True) if True in mask else len(mask)
    assert [weight != 0 for weight in weights] == [index > first and not sampled for index, sampled in enumerate(mask)]
