"""Mean and interval of an evaluation."""

import random
from math import sqrt

import pytest

from trainer.orchestrator.evals.statistics import mean_interval


def test_independent_rollouts_give_the_usual_interval():
    rewards = [(task, float(task % 2)) for task in range(100)]
    mean, (low, high) = mean_interval(rewards)
    assert mean == 0.5
    assert high - mean == pytest.approx(1.959964 * sqrt(0.25 / 99), rel=1e-6)
    assert mean - low == pytest.approx(high - mean)


def test_rollouts_of_one_task_are_not_counted_as_independent():
    once = [(task, float(task % 2)) for task in range(20)]
    repeated = [(task, reward) for task, reward in once for _ in range(50)]
    assert mean_interval(once) == pytest.approx(mean_interval(repeated)[0]) or mean_interval(once)[1] == pytest.approx(
        mean_interval(repeated)[1]
    )


def test_nothing_has_no_mean_and_one_task_no_width():
    assert mean_interval([]) is None
    assert mean_interval([(0, 1.0), (0, 0.0)]) == (0.5, (0.5, 0.5))


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    source, covered = random.Random(0), 0
    for _ in range(300):
        tasks = [(task, source.random()) for task in range(40)]
        rewards = [(task, float(source.random() < chance)) for task, chance in tasks for _ in range(4)]
        _, (low, high) = mean_interval(rewards)
        covered += low <= 0.5 <= high
    assert covered / 300 > 0.9
