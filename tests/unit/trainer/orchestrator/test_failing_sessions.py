"""An environment whose sessions fail to begin teaches nothing (case 10): 1172 of 1280 rollouts fail in their reset, and the other
108 are trained as if they had been alone. The real orchestrator, from dispatch to the step's figures."""

import asyncio
import logging
from collections import Counter, defaultdict
from pathlib import Path
from statistics import fmean

import pytest

from tests.fixtures.scripted_run import ScriptedEnvironment, ScriptedRun, good
from tests.fixtures.virtual_time import run_virtually
from trainer.contracts.events import Meter
from trainer.contracts.rollouts import RolloutEnd, RolloutRequest, TenantError
from trainer.contracts.run_config import RunConfig

SIZE, BATCH, BEFORE = 8, 64, 128
FAILING, FAILED = 1280, 1172
REWARDS = (1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0)
RESET = RolloutEnd(state="failed", errors=[TenantError(type="SessionResetError", message="no browser")], fault="tenant")


@pytest.fixture(autouse=True, scope="module")
def _quiet():
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


class Sessions:
    """All is well before and after the 1280."""

    def __init__(self) -> None:
        self.failed: set[str] = set()
        self.rewards: dict[str, float] = {}

    async def play(self, request: RolloutRequest, environment: ScriptedEnvironment) -> RolloutEnd:
        number = len(environment.started) - 1
        await asyncio.sleep(1.0)
        if BEFORE <= number < BEFORE + FAILING and not self._has_session(number - BEFORE):
            self.failed.add(request.rollout_id)
            return RESET
        self.rewards[request.rollout_id] = REWARDS[number % SIZE]
        return good(environment.say(request), REWARDS[number % SIZE])

    def _has_session(self, number: int) -> bool:
        """4 of the 8 rollouts of each of 27 groups among the 160."""
        group, member = divmod(number, SIZE)
        return member % 2 == 0 and group % 6 == 0 and group // 6 < 27


def played(folder: Path, sessions: Sessions, **changes) -> tuple[ScriptedRun, str | None, str]:
    fields = {"model": {"name": "tiny"}, "environments": [{"id": "acme/browser"}], "max_steps": 5, "batch_size": BATCH}
    run = ScriptedRun(RunConfig.model_validate(fields | {"rollouts_per_example": SIZE} | changes), folder, sessions.play)
    finish = run_virtually(asyncio.wait_for(run.attempt(), 3_600.0))
    return run, finish.code, finish.message


@pytest.fixture(scope="module")
def masked(tmp_path_factory):
    """The run that was told never to pause, and its sessions."""
    sessions = Sessions()
    run, code, _ = played(tmp_path_factory.mktemp("run"), sessions, failure_pause_fraction=1.0)
    assert code is None and len(sessions.failed) == FAILED
    return run, sessions


def test_failed_sessions_leave_the_baseline_of_the_valid_ones_alone(masked):
    run, sessions = masked
    samples = {sample.rollout_id: sample for batch in run.samples().values() for sample in batch}
    assert not samples.keys() & sessions.failed
    groups = defaultdict(list)
    for key, sample in samples.items():
        groups[sample.group_id].append((sessions.rewards[key], set(sample.advantages) - {0.0}))
    sizes = Counter(map(len, groups.values()))
    assert sizes[SIZE // 2] >= BATCH // (SIZE // 2), "the groups with four valid rollouts were trained"
    for members in groups.values():
        baseline = fmean(reward for reward, _ in members)
        assert all(told <= {reward - baseline} for reward, told in members)


def test_failed_sessions_are_charted_and_not_billed(masked):
    run, sessions = masked
    rows, steps = run.rows(), run.control.steps()
    failed = [row for row in rows if row.rollout_id in sessions.failed]
    assert len(failed) == FAILED
    assert {(row.state, row.reward, row.trained, row.output_tokens) for row in failed} == {("failed", None, False, 0)}
    assert sum(metrics.get("errors/SessionResetError", 0) for metrics in steps.values()) == FAILED
    worst = max(steps.values(), key=lambda metrics: metrics["error_rate"])
    assert worst["error_rate"] > 0.8 and worst["reward_unmasked"] < 0.2 < worst["reward"]
    assert sum(metrics["error_rate"] * metrics["rollouts"] for metrics in steps.values()) == pytest.approx(FAILED)
    billed = sum(count for (meter, _), count in run.control.usage.items() if meter == Meter.ROLLOUT_OUTPUT_TOKENS)
    assert billed == sum(row.output_tokens for row in rows if row.trained)


def test_a_run_whose_sessions_fail_pauses_and_names_them(tmp_path):
    sessions = Sessions()
    run, code, message = played(tmp_path, sessions)
    assert code == "environment_failing" and "SessionResetError" in message
    assert len(sessions.failed) < 2 * BATCH, "it does not wait for the rest"
    assert not {sample.rollout_id for batch in run.samples().values() for sample in batch} & sessions.failed
