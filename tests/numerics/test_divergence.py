"""A learning rate of 2e-2 is told while the run still goes on, and one that works is not."""

import pytest

from tests.numerics.lagged_training import lagged_metrics
from trainer.orchestrator.steps.divergence import DivergenceAlarm


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("learning_rate", "lag", "rises"), [(2e-2, 0, True), (2e-2, 4, True), (2e-3, 4, False)])
def test_the_alarm_rises_within_ten_steps_of_a_real_run(tmp_path, learning_rate, lag, rises):
    alarm = DivergenceAlarm(learning_rate=learning_rate)
    steps = lagged_metrics(tmp_path, learning_rate=learning_rate, lag=lag, seed=3, steps=10)
    told = [step for step, metrics in enumerate(steps, start=1) if alarm.add(step, metrics)]
    assert bool(told) is rises, steps
