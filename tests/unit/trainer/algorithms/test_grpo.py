"""The advantages of grpo, and how an algorithm is found by its configuration."""

import itertools
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.factories.groups import make_group_view, make_rollout_view, make_seat
from trainer.algorithms import ALGORITHMS, UnknownAlgorithm, algorithm_for
from trainer.contracts.algorithms import GROUP_RELATIVE, OPTIONS
from trainer.contracts.run_config import AlgorithmConfig, AlgorithmId

REWARDS = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=32)


def grpo(rewards, **options):
    return algorithm_for(AlgorithmConfig(id="grpo", options=options)).advantages(rewards, [1] * len(rewards))


def test_advantages_are_rewards_above_the_mean():
    assert grpo([1.0, 0.0, 0.0, 1.0]) == [0.5, -0.5, -0.5, 0.5]


def test_a_group_that_agrees_teaches_nothing():
    assert grpo([0.1] * 3) == [0.0, 0.0, 0.0]
    assert grpo([0.1] * 3, divide_by_std=True) == [0.0, 0.0, 0.0]


def test_no_valid_rollout_gives_no_advantage():
    assert grpo([]) == []


def test_dividing_by_the_standard_deviation_gives_unit_spread():
    assert grpo([2.0, 4.0], divide_by_std=True) == [-1.0, 1.0]


@given(REWARDS)
def test_advantages_sum_to_zero_and_keep_the_order(rewards):
    advantages = grpo(rewards)
    assert sum(advantages) == pytest.approx(0.0, abs=1e-6 * max(map(abs, rewards)) + 1e-12)
    ordered = [advantage for _, advantage in sorted(zip(rewards, advantages, strict=True))]
    assert all(below <= above for below, above in itertools.pairwise(ordered))


@pytest.mark.parametrize(
    ("config", "named"),
    [
        (AlgorithmConfig(id="grpo", options={"divide": True}), "algorithm.options.divide"),
        (AlgorithmConfig(id="grpo", options={"divide_by_std": "perhaps"}), "algorithm.options.divide_by_std"),
    ],
)
def test_a_wrong_configuration_is_named(config, named):
    with pytest.raises(UnknownAlgorithm, match=named):
        algorithm_for(config)


def test_the_contract_names_every_algorithm():
    assert set(get_args(AlgorithmId)) == set(ALGORITHMS)


def test_the_length_penalty_prefers_the_shorter_of_two_successes_and_spares_failures():
    """By hand: lengths 80, 30, 10 have mean 40; 1/(1 + 0.5·2) = 0.5, 1/(1 + 0.5·0.75) = 8/11, 0 stays 0."""
    algorithm = algorithm_for(AlgorithmConfig(id="grpo", options={"length_penalty": 0.5}))
    shaped = [0.5, 8 / 11, 0.0]
    mean = sum(shaped) / 3
    assert algorithm.advantages([1.0, 1.0, 0.0], [80, 30, 10]) == pytest.approx([value - mean for value in shaped])


def test_a_failure_gains_nothing_by_its_length():
    algorithm = algorithm_for(AlgorithmConfig(id="grpo", options={"length_penalty": 0.5}))
    assert algorithm.advantages([0.0, 0.0], [80, 10]) == [0.0, 0.0]
    assert algorithm.advantages([-1.0, -1.0], [80, 10]) == [0.0, 0.0]
    assert algorithm.advantages([1.0, 0.0], [0, 0]) == [0.5, -0.5]


async def test_every_sampled_token_of_a_rollout_has_its_advantage_and_no_other_token_has_a_weight():
    group = make_group_view(make_rollout_view(make_seat(1.0)), make_rollout_view(make_seat(0.0)))
    told = await algorithm_for(AlgorithmConfig(id="grpo")).score(group)
    assert [signals.advantage for signals in told] == [0.5, -0.5]
    stream = told[1].seats[0][0]
    assert (stream.rl_weights, stream.advantages) == ([0, 0, 1, 1], [0, 0, -0.5, -0.5])
    assert (stream.ce_weights, stream.ref_kl_weights, stream.ref_logprobs) == (None, None, None)


def test_every_algorithm_has_options_in_the_contract():
    assert set(OPTIONS) == set(ALGORITHMS)
    assert all(ALGORITHMS[name].valid_min == 2 for name in GROUP_RELATIVE)
