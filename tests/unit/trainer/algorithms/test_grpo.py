"""The advantages of grpo, and how an algorithm is found by its configuration."""

import itertools
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.algorithms import ALGORITHMS, UnknownAlgorithm, algorithm_for
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
