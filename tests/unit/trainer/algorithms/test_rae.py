"""rae: a baseline per agent, compared with first and moved afterwards, and carried over a restart."""

import pytest

from tests.factories.groups import make_group_view, make_rollout_view, make_seat, make_stream
from trainer.algorithms import algorithm_for
from trainer.algorithms.rae import AGENTS_MAX
from trainer.contracts.run_config import AlgorithmConfig


def rae(**options):
    return algorithm_for(AlgorithmConfig(id="rae", options=options))


async def shown(algorithm, *rewards: float) -> list[float]:
    group = make_group_view(*(make_rollout_view(make_seat(reward)) for reward in rewards))
    return [signals.advantage for signals in await algorithm.score(group)]


async def test_each_reward_is_compared_before_it_moves_the_baseline():
    """By hand: b = 0 → 0.05 → 0.0475 → 0.095125."""
    algorithm = rae()
    assert await shown(algorithm, 1.0, 0.0, 1.0) == pytest.approx([1.0, -0.05, 0.9525])
    assert algorithm.state() == pytest.approx({"agent": 0.95 * 0.0475 + 0.05})


async def test_agents_have_baselines_of_their_own_and_seats_advantages_of_their_own():
    algorithm = rae(decay=0.5)
    win = make_rollout_view(make_seat(1.0, "first"), make_seat(-1.0, "second"))
    one, two = await algorithm.score(make_group_view(win, win))
    told = [[seat[0].advantages for seat in signals.seats] for signals in (one, two)]
    assert told == [[[0, 0, 1.0, 1.0], [0, 0, -1.0, -1.0]], [[0, 0, 0.5, 0.5], [0, 0, -0.5, -0.5]]]
    assert algorithm.state() == {"first": 0.75, "second": -0.75}
    assert (one.advantage, two.advantage) == (0.0, 0.0)


async def test_a_seat_of_several_branches_moves_its_baseline_once():
    algorithm = rae(decay=0.5)
    streams = (make_stream((1, False), (1, True)), make_stream((2, False), (1, True)))
    (signals,) = await algorithm.score(make_group_view(make_rollout_view(make_seat(1.0, "agent", *streams))))
    assert [stream.advantages for stream in signals.seats[0]] == [[0, 1.0], [0, 0, 1.0]]
    assert algorithm.state() == {"agent": 0.5}


async def test_a_restored_instance_goes_on_as_if_nothing_had_happened():
    whole, first, second = rae(), rae(), rae()
    expected = await shown(whole, 1.0, 1.0, 0.0) + await shown(whole, 1.0, 0.0)
    begun = await shown(first, 1.0, 1.0, 0.0)
    second.restore(first.state())
    assert begun + await shown(second, 1.0, 0.0) == expected
    assert second.state() == whole.state()


def test_a_group_of_one_is_enough():
    assert rae().valid_min == 1


def test_names_without_end_do_not_become_state_without_end():
    algorithm = rae()
    for number in range(AGENTS_MAX * 2):
        algorithm.advantage(f"agent {number}", 1.0)
    assert len(algorithm.state()) == AGENTS_MAX + 1
    assert algorithm.advantage("agent 0", 1.0) == pytest.approx(0.95)
