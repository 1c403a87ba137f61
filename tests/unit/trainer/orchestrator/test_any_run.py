"""Whatever delays, failures, cancellations and restarts come, in whatever order: a run's promises hold (invariant 10).

No trained rollout is older than the bound, none is trained or accounted twice, nothing waits for ever: a run trains every step
or ends with a cause. The whole orchestrator runs, on a clock of its own.
"""

import asyncio
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.fixtures.scripted_run import ScriptedEnvironment, ScriptedRun, good
from tests.fixtures.virtual_time import run_virtually
from trainer.contracts.internal import Finish
from trainer.contracts.rollouts import RolloutEnd, RolloutRequest
from trainer.contracts.run_config import RunConfig
from trainer.orchestrator.environments.runner_client import RunnerSilent

STEPS, BATCH, SIZE = 6, 8, 4
FAILURES = ("failed", "incomplete", "deadline", "silent")
HOUR_S = 3_600.0


def make_config(**changes) -> RunConfig:
    fields = {
        "model": {"name": "tiny"},
        "environments": [{"id": "acme/digits", "timeout": 60.0}],
        "max_steps": STEPS,
        "batch_size": BATCH,
        "rollouts_per_example": SIZE,
        "checkpoints": {"interval": 3},
    }
    return RunConfig.model_validate(fields | changes)


class Weather:
    """What befalls rollouts, machines and the process, from one seed."""

    def __init__(self, seed: int, *, failing: float, spread: float, stubborn: float = 0.2):
        self.luck = random.Random(seed)
        self.failing, self.spread, self.stubborn = failing, spread, stubborn

    def delay_s(self) -> float:
        return min(60.0, self.luck.lognormvariate(0.0, self.spread))

    async def play(self, request: RolloutRequest, environment: ScriptedEnvironment) -> RolloutEnd:
        seconds = self.delay_s()
        if self.luck.random() < self.stubborn:
            await asyncio.sleep(seconds)
        elif not await environment.take(request.rollout_id, seconds):
            return RolloutEnd(state="cancelled")
        if self.luck.random() < self.failing:
            return self._failure()
        return good(environment.say(request), float(self.luck.random() < 0.5))

    def _failure(self) -> RolloutEnd:
        state = self.luck.choice(FAILURES)
        if state == "silent":
            raise RunnerSilent("gone")
        return RolloutEnd(state=state, fault="tenant")

    async def before_step(self, step: int) -> None:
        await asyncio.sleep(self.delay_s())


async def live(run: ScriptedRun, weather: Weather, *, kills: int) -> Finish:
    """Attempts that are killed after random times, and one that is not."""
    run.trainer.before_step = weather.before_step
    for _ in range(kills):
        try:
            async with asyncio.timeout(weather.luck.uniform(0.0, 20.0)):
                return await run.attempt()
        except TimeoutError:
            continue
    async with asyncio.timeout(HOUR_S):
        return await run.attempt()


def check(run: ScriptedRun, finish: Finish, *, bound: int) -> None:
    rows = run.rows()
    ids = [row.rollout_id for row in rows]
    assert len(ids) == len(set(ids)), "a rollout was accounted twice"
    trained = [sample.rollout_id for samples in run.samples().values() for sample in samples]
    assert len(trained) == len(set(trained)), "a rollout was trained twice"
    for step, samples in run.samples().items():
        assert all(step - 1 - min(sample.policy_versions) <= bound for sample in samples), "older than the bound"
        assert len({sample.rollout_id for sample in samples}) >= BATCH
    assert set(trained) == {row.rollout_id for row in rows if row.trained}
    assert not any(row.trained and row.state != "ok" for row in rows)
    assert set(run.environments[-1].started) <= {*ids, *run.journalled()}, "a rollout of the last attempt is in no account"
    assert finish.outcome in ("completed", "paused") and finish.message
    if finish.outcome == "completed":
        assert sorted(run.samples()) == list(range(1, STEPS + 1)) == sorted(run.control.steps())


def drive(seed: int, *, bound: int, failing: float, spread: float, kills: int, **changes) -> None:
    weather = Weather(seed, failing=failing, spread=spread)
    with tempfile.TemporaryDirectory() as folder:
        run = ScriptedRun(make_config(max_off_policy_steps=bound, **changes), Path(folder), weather.play)
        finish = run_virtually(live(run, weather, kills=kills))
        check(run, finish, bound=bound)


@settings(max_examples=8, deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate])
@given(
    seed=st.integers(0, 2**32),
    bound=st.sampled_from([0, 1, 2, 8]),
    failing=st.sampled_from([0.0, 0.1, 0.4]),
    spread=st.floats(0.0, 2.0),
    kills=st.integers(0, 2),
)
def test_whatever_happens_the_promises_hold(seed, bound, failing, spread, kills):
    drive(seed, bound=bound, failing=failing, spread=spread, kills=kills)


@pytest.mark.heavy
@pytest.mark.timeout(300)
@settings(max_examples=100, deadline=None, phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink])
@given(
    seed=st.integers(0, 2**32),
    bound=st.integers(0, 8),
    failing=st.sampled_from([0.0, 0.1, 0.4, 0.9]),
    spread=st.floats(0.0, 3.0),
    kills=st.integers(0, 4),
    oversampling=st.sampled_from([1.0, 2.0, 4.0]),
)
def test_whatever_happens_the_promises_hold_in_hundreds_of_runs(seed, bound, failing, spread, kills, oversampling):
    drive(seed, bound=bound, failing=failing, spread=spread, kills=kills, oversampling_factor=oversampling)


def test_nothing_is_waited_for_when_everything_in_flight_has_gone_stale():
    """Every other group takes as long as many steps, and hears of no cancellation."""

    async def play(request: RolloutRequest, environment: ScriptedEnvironment) -> RolloutEnd:
        number = environment.started.index(request.rollout_id)
        await asyncio.sleep(50.0 if number // SIZE % 2 else 0.1)
        return good(environment.say(request), float(number % 2))

    with tempfile.TemporaryDirectory() as folder:
        run = ScriptedRun(make_config(max_off_policy_steps=1, oversampling_factor=8.0), Path(folder), play)
        finish = run_virtually(asyncio.wait_for(run.attempt(), HOUR_S))
        check(run, finish, bound=1)
    assert finish.outcome == "completed"
    assert any(row.state == "stale" for row in run.rows())


def test_a_straggler_alone_is_given_up_and_its_group_is_trained():
    async def play(request: RolloutRequest, environment: ScriptedEnvironment) -> RolloutEnd:
        is_first = len(environment.started) == 1
        if not await environment.take(request.rollout_id, 3_000.0 if is_first else 1.0):
            return RolloutEnd(state="cancelled")
        return good(environment.say(request), float(environment.started.index(request.rollout_id) % 2))

    with tempfile.TemporaryDirectory() as folder:
        config = make_config(max_off_policy_steps=0, environments=[{"id": "acme/digits", "timeout": 3_600.0}], max_steps=2)
        run = ScriptedRun(config, Path(folder), play)
        finish = run_virtually(asyncio.wait_for(run.attempt(), 300.0))
    assert finish.outcome == "completed"
    straggler = next(row for row in run.rows() if row.rollout_id == run.environments[0].started[0])
    siblings = [row for row in run.rows() if row.group_id == straggler.group_id and row is not straggler]
    assert straggler.state == "cancelled" and not straggler.billed and straggler.reward is None
    assert [row.trained for row in siblings] == [True] * (SIZE - 1)
    assert sum(metrics.get("rollouts_cancelled", 0) for metrics in run.control.steps().values()) == 1


def test_a_trainer_that_never_moves_the_adapter_ends_the_run_with_the_cause():
    async def play(request: RolloutRequest, environment: ScriptedEnvironment) -> RolloutEnd:
        await environment.take(request.rollout_id, 1.0)
        return good(environment.say(request), float(environment.started.index(request.rollout_id) % 2))

    with tempfile.TemporaryDirectory() as folder:
        run = ScriptedRun(make_config(max_steps=50), Path(folder), play)
        run.trainer.digest_of = lambda run_id, step: "e" * 64
        finish = run_virtually(asyncio.wait_for(run.attempt(), HOUR_S))
    assert (finish.outcome, finish.code) == ("failed", "stalled")
    assert "has not changed for 10 steps" in finish.message
    assert all(row.policy_version_min == row.policy_version_max for row in run.rows())
