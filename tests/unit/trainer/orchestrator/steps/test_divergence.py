"""When a run counts as diverging, by series that real runs of the tiny model left (`tests/numerics/lagged_training.py`)."""

import json
import random
from pathlib import Path

import pytest

from trainer.orchestrator.steps.divergence import CALM_STEPS, DRIFT_MAX, DivergenceAlarm

RECORDED = json.loads((Path(__file__).parents[4] / "data" / "divergence.json").read_text())


def named(one: dict) -> str:
    return f"{one['learning_rate']:g} at lag {one['lag']}, seed {one['seed']}"


def rises(one: dict) -> list[int]:
    """Steps at which the alarm rose or ended."""
    alarm = DivergenceAlarm(learning_rate=one["learning_rate"])
    steps = (dict(zip(RECORDED["columns"], row, strict=True)) for row in one["rows"])
    return [step for step, metrics in enumerate(steps, start=1) if alarm.add(step, metrics)]


def fed(alarm: DivergenceAlarm, steps: list[dict[str, float]]) -> list[bool]:
    return [alarm.add(step, metrics) for step, metrics in enumerate(steps, start=1)]


@pytest.mark.parametrize("one", RECORDED["diverging"], ids=named)
def test_a_learning_rate_ten_times_too_large_is_told_within_ten_steps(one):
    assert rises(one)[0] <= 10


@pytest.mark.parametrize("one", RECORDED["healthy"], ids=named)
def test_runs_that_learn_raise_no_alarm(one):
    assert len(one["rows"]) == 40 and rises(one) == []


def test_drift_takes_more_than_one_step_and_more_than_stale_rollouts():
    above, below = DRIFT_MAX * 1.1, DRIFT_MAX * 0.9
    once = [{"step_kl": value} for value in (0.0, 99.0, 0.0, 0.0, 99.0)]
    assert not any(fed(DivergenceAlarm(learning_rate=1e-3), once))
    stale = [{"step_kl": below, "mismatch_kl": 9.0, "staleness_mean": 8.0}] * 5
    assert not any(fed(DivergenceAlarm(learning_rate=1e-3), stale))
    assert fed(DivergenceAlarm(learning_rate=1e-3), [{"step_kl": above}] * 3) == [False, False, True]


def test_the_words_hold_the_figures_and_the_way_out():
    alarm = DivergenceAlarm(learning_rate=0.02)
    fed(alarm, [{"step_kl": 0.5, "grad_norm": 1.25, "entropy": 0.1, "reward": 0.2}] * 3)
    ending = alarm.ending()
    assert (ending.outcome, ending.code) == ("paused", "diverging")
    for word in (
        "step 3",
        "step_kl of about 0.50",
        "grad_norm 1.25",
        "entropy 0.1",
        "rate below 0.02",
        "checkpoint",
    ):
        assert word in ending.message


def test_an_alarm_stands_until_it_has_been_calm_and_may_rise_again():
    alarm = DivergenceAlarm(learning_rate=1e-3)
    bad, good = {"step_kl": 1.0}, {"step_kl": 0.0}
    assert fed(alarm, [bad] * 6) == [False, False, True, False, False, False]
    # One more step is still a sign: two of its window's three are bad.
    assert fed(alarm, [good] * (CALM_STEPS + 1)) == [False] * CALM_STEPS + [True]
    assert alarm.message is None and alarm.ending() is None
    assert fed(alarm, [bad] * 2) == [False, True]


@pytest.mark.parametrize("seed", range(4))
def test_unlucky_tasks_are_no_collapse(seed):
    """The kind: 16 tasks a step that are each solved or hopeless, so that rewards differ as much as they can."""
    rng, alarm = random.Random(seed), DivergenceAlarm(learning_rate=1e-3)
    for step in range(1, 1001):
        solved = sum(rng.random() < 0.5 for _ in range(16)) / 16
        spread = (solved * (1 - solved)) ** 0.5
        entropy = 0.1 * solved + 0.4 * (1 - solved)
        assert not alarm.add(step, {"reward": solved, "reward_std": spread, "entropy": entropy})


def test_a_collapse_does_not_depend_on_the_rewards_scale():
    rewards = [0.1, 0.2, 0.3, 0.5, 0.6, 0.6, 0.6, 0.05, 0.0, 0.0]
    for scale, shift in ((1.0, 0.0), (1000.0, -700.0)):
        alarm = DivergenceAlarm(learning_rate=1e-3)
        sure = [{"reward": scale * r + shift, "reward_std": scale * 0.5, "entropy": 0.1 if r > 0.05 else 0.6} for r in rewards]
        assert any(fed(alarm, sure)) and "mean reward of 3 steps fell" in alarm.message
    kept = DivergenceAlarm(learning_rate=1e-3)
    assert not any(fed(kept, [{"reward": r, "reward_std": 0.5, "entropy": 0.1} for r in rewards])), "as sure as before"
