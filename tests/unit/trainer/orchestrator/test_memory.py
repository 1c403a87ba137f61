"""The orchestrator's memory does not grow with the rollouts that it has had: ten thousand through the real dispatcher, book,
curriculum, journal and reports, good, failed, filtered and given up. What pictures and routing take stands in
`test_rollout_artifacts`."""

import asyncio
import gc
import logging
import random
import tracemalloc
from pathlib import Path

import pytest

from tests.fixtures.scripted_run import ScriptedEnvironment, ScriptedRun, good
from tests.fixtures.virtual_time import run_virtually
from trainer.contracts.rollouts import RolloutEnd, RolloutRequest
from trainer.contracts.run_config import RunConfig
from trainer.orchestrator.environments.runner_client import RunnerSilent

BATCH, SIZE = 128, 4
TOKENS = tuple(range(2, 34))
STEP_BYTES = 1 << 20
"""What the book holds differs from step to step. A hundred bytes kept of each rollout would be as much."""


@pytest.fixture(autouse=True)
def _quiet():
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)


class Fates:
    def __init__(self) -> None:
        self.luck = random.Random(7)
        self.count = 0

    async def play(self, request: RolloutRequest, environment: ScriptedEnvironment) -> RolloutEnd:
        self.count += 1
        luck = self.luck.random()
        if not await environment.take(request.rollout_id, 400.0 if luck > 0.99 else self.luck.uniform(0.5, 2.0)):
            return RolloutEnd(state="cancelled")
        if luck < 0.02:
            raise RunnerSilent("gone")
        if luck < 0.1:
            return RolloutEnd(state="failed", fault="tenant")
        trace_id = environment.say(request, token_ids=TOKENS, logprobs=(-0.5,) * len(TOKENS), output_tokens=len(TOKENS))
        return good(trace_id, float(luck < 0.5))


def forget(run: ScriptedRun) -> None:
    """Let the world around the orchestrator keep nothing but the newest."""
    control, trainer, engine = run.control, run.trainer, run.engine
    for kept in (control.events, control.versions, trainer.batches, trainer.results):
        for key in sorted(kept)[:-1]:
            del kept[key]
    for whole in (control.rollouts, control.usage, control.checkpoints, control.phases, engine.loads, engine.unloads):
        whole.clear()
    for environment in run.environments:
        environment.started.clear()


def measured(folder: Path, *, steps: int) -> tuple[list[int], int]:
    """Bytes that are held before each step, and how many rollouts there were."""
    fates = Fates()
    fields = {"environments": [{"id": "a/b", "curriculum": {}}], "max_steps": steps, "batch_size": BATCH}
    filters = {"pre_batch_filters": [{"type": "zero_advantage"}], "failure_pause_fraction": 1.0, "max_off_policy_steps": 2}
    config = RunConfig.model_validate({"model": {"name": "tiny"}, "rollouts_per_example": SIZE} | fields | filters)
    run, held = ScriptedRun(config, folder, fates.play), []

    async def look(step: int) -> None:
        forget(run)
        gc.collect()
        held.append(tracemalloc.get_traced_memory()[0])

    run.trainer.before_step = look
    tracemalloc.start()
    try:
        finish = run_virtually(asyncio.wait_for(run.attempt(), 1e6))
    finally:
        tracemalloc.stop()
    assert finish.outcome == "completed", finish
    return held, fates.count


def check(held: list[int]) -> str:
    quarter = len(held) // 4
    early, late = max(held[quarter : 2 * quarter]), max(held[-quarter:])
    assert late < early + STEP_BYTES
    return f"{early / 2**20:.2f} MiB at most in the second quarter of the run, {late / 2**20:.2f} MiB in the last"


@pytest.mark.heavy
@pytest.mark.timeout(300)
def test_memory_is_flat_over_ten_thousand_rollouts(tmp_path):
    held, count = measured(tmp_path, steps=60)
    assert count >= 10_000
    print(f"{count:,} rollouts: {check(held)}")
