"""The advantages of max_rl."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.algorithms import algorithm_for
from trainer.contracts.run_config import AlgorithmConfig


def max_rl(rewards):
    return algorithm_for(AlgorithmConfig(id="max_rl")).advantages(rewards, [1] * len(rewards))


@pytest.mark.parametrize(
    ("rewards", "advantages"),
    [
        ([1.0, 0.0, 0.0, 0.0], [3.0, -1.0, -1.0, -1.0]),
        ([1.0, 1.0, 1.0, 0.0], [1 / 3, 1 / 3, 1 / 3, -1.0]),
        ([0.5, 1.5], [-0.5, 0.5]),
        ([1.0, 1.0], [0.0, 0.0]),
        ([0.1, 0.1, 0.1], [0.0, 0.0, 0.0]),
        ([], []),
    ],
)
def test_a_lead_counts_as_a_share_of_the_mean(rewards, advantages):
    assert max_rl(rewards) == pytest.approx(advantages)


@pytest.mark.parametrize("rewards", [[0.0, 0.0], [-1.0, 1.0], [-2.0, 1.0], [-1.0, -3.0]])
def test_a_mean_that_is_not_above_zero_teaches_nothing(rewards):
    assert max_rl(rewards) == [0.0, 0.0]


@settings(max_examples=40)
@given(st.lists(st.floats(0, 1e3), min_size=1, max_size=16))
def test_no_failure_falls_below_minus_one_and_the_order_is_kept(rewards):
    advantages = max_rl(rewards)
    assert all(advantage >= -1 - 1e-9 for advantage in advantages)
    assert sum(advantages) == pytest.approx(0.0, abs=1e-6 * len(rewards))
    ordered = [advantage for _, advantage in sorted(zip(rewards, advantages, strict=True))]
    assert all(below <= above for below, above in itertools.pairwise(ordered))
