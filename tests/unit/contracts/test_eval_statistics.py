"""Statistics of evaluations, against figures worked out by hand, by enumeration, or taken from tables."""

import random
from itertools import combinations
from math import sqrt
from statistics import fmean

import pytest

from trainer.contracts.eval_statistics import (
    mean_estimate,
    paired,
    pass_at_k,
    pass_hat_k,
    pass_rates,
    t_quantile,
    t_tail,
)


@pytest.mark.parametrize(("degrees", "table"), [(1, 12.7062), (2, 4.30265), (9, 2.26216), (30, 2.04227), (99, 1.98422)])
def test_quantiles_are_those_of_the_table(degrees, table):
    assert t_quantile(degrees) == pytest.approx(table, abs=1e-4)
    assert t_tail(t_quantile(degrees), degrees) == pytest.approx(0.05)


def test_tails_at_one_and_two_degrees_have_closed_forms():
    """With one degree the distribution is Cauchy's, with two its tail is 1 - t/sqrt(2 + t*t)."""
    assert t_tail(1.0, 1) == pytest.approx(0.5)
    assert t_tail(1.5, 2) == pytest.approx(1 - 1.5 / sqrt(2 + 1.5**2))
    assert t_tail(0.0, 5) == 1.0


@pytest.mark.parametrize(("n", "c", "k"), [(4, 2, 2), (5, 1, 3), (6, 6, 4), (6, 0, 1), (5, 3, 5)])
def test_pass_rates_are_the_share_of_all_draws(n, c, k):
    draws = list(combinations([True] * c + [False] * (n - c), k))
    assert pass_at_k(n, c, k) == pytest.approx(fmean(any(draw) for draw in draws))
    assert pass_hat_k(n, c, k) == pytest.approx(fmean(all(draw) for draw in draws))


def test_more_draws_than_rollouts_are_refused():
    for rate in (pass_at_k, pass_hat_k):
        with pytest.raises(ValueError, match="3 rollouts say nothing about 4"):
            rate(3, 1, 4)


def test_a_pass_rate_leaves_out_examples_with_too_few_rewards_and_says_how_many_it_has():
    rates = pass_rates({"a": [1.0, 0.0, 0.0, 0.0], "b": [1.0, 1.0, 0.0], "c": [0.0]})
    assert [(rate.k, rate.examples) for rate in rates] == [(1, 3), (2, 2), (4, 1)]
    assert rates[0].any_of == pytest.approx((1 / 4 + 2 / 3 + 0) / 3)
    assert rates[1].any_of == pytest.approx((1 - 3 / 6 + 1) / 2)
    assert rates[1].all_of == pytest.approx((0 + 1 / 3) / 2)
    assert pass_rates({"a": [0.6, 0.4]}, threshold=0.3)[0].any_of == 1.0
    assert pass_rates({}) == []


def test_the_interval_of_four_examples_by_hand():
    """Means 0, 0, 1, 1 about 0.5: the variance is 1/3, its standard error sqrt(1/12), and t with 3 degrees is 3.18245."""
    found = mean_estimate({"a": [0.0], "b": [0.0], "c": [1.0], "d": [1.0]})
    assert found is not None and found.mean == 0.5
    assert found.interval == pytest.approx((0.5 - 3.18245 * sqrt(1 / 12), 0.5 + 3.18245 * sqrt(1 / 12)), abs=1e-4)


def test_rollouts_of_one_example_are_not_counted_as_independent():
    once = {str(task): [float(task % 2)] for task in range(20)}
    repeated = {task: rewards * 50 for task, rewards in once.items()}
    first, second = mean_estimate(once), mean_estimate(repeated)
    assert first is not None and second is not None
    assert first.interval == pytest.approx(second.interval)


def test_nothing_has_no_mean_and_one_example_no_interval():
    assert mean_estimate({}) is None
    found = mean_estimate({"a": [1.0, 0.0]})
    assert found is not None and (found.mean, found.interval) == (0.5, None)


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    source, covered = random.Random(0), 0
    for _ in range(300):
        chances = {str(task): source.random() for task in range(12)}
        found = mean_estimate({task: [float(source.random() < chance) for _ in range(4)] for task, chance in chances.items()})
        assert found is not None and found.low is not None and found.high is not None
        covered += found.low <= 0.5 <= found.high
    assert 0.91 < covered / 300 < 0.99


def test_the_paired_test_of_a_text_book():
    """Differences 1, 2, 3: mean 2, standard error 1/sqrt(3), t = 3.4641 with two degrees, p = 0.07418."""
    found = paired({"a": [0.0], "b": [0.0, 2.0], "c": [1.0]}, {"a": [1.0], "b": [3.0], "c": [4.0], "d": [9.0]})
    assert found is not None
    assert (found.examples, found.difference.mean) == (3, 2.0)
    assert found.p_value == pytest.approx(1 - sqrt(12) / sqrt(14))
    assert found.difference.high == pytest.approx(2 + 4.30265 / sqrt(3), abs=1e-4)
    assert (found.improved, found.regressed, found.same) == (3, 0, 0)


def test_differences_without_spread_are_certain_and_strangers_cannot_be_compared():
    same = paired({"a": [1.0], "b": [0.0]}, {"a": [1.0], "b": [0.0]})
    worse = paired({"a": [1.0], "b": [1.0]}, {"a": [0.0], "b": [0.0]})
    assert same is not None and (same.p_value, same.same) == (1.0, 2)
    assert worse is not None and (worse.p_value, worse.difference.interval) == (0.0, (-1.0, -1.0))
    assert paired({"a": [1.0]}, {"b": [1.0]}) is None
    single = paired({"a": [1.0]}, {"a": [0.0]})
    assert single is not None and (single.p_value, single.regressed) == (None, 1)


def test_chance_alone_is_called_a_difference_about_one_time_in_twenty():
    source, called = random.Random(1), 0
    for _ in range(400):
        first, second = ({str(task): [source.gauss(0, 1)] for task in range(10)} for _ in range(2))
        found = paired(first, second)
        assert found is not None and found.p_value is not None
        called += found.p_value < 0.05
    assert 0.02 < called / 400 < 0.09
