"""P11: how much sooner an asynchronous run ends than a synchronous one, when environments take their time.

The whole orchestrator runs: dispatcher, groups, staleness, batches, journal, reports. Environment, engine and trainer are
scripted and the clock is virtual: a rollout takes a lognormal(1) time with a median of a second, a training step a fixed one. So
the rows say what the orchestrator's own waiting costs, and nothing of how quick anybody computes.
"""

import asyncio
import math
import random
import tempfile
from functools import cache
from pathlib import Path

from tests.bench.rows import Bound, Disagreement, Row
from tests.fixtures.scripted_run import ScriptedEnvironment, ScriptedRun, good
from tests.fixtures.virtual_time import run_virtually
from trainer.contracts.rollouts import RolloutEnd, RolloutRequest
from trainer.contracts.run_config import RunConfig

BATCH, GROUP_SIZE, BOUND = 64, 8, 8
STEPS = {0: 10, BOUND: 40}
"""By bound. Steps of the synchronous run are all alike; the asynchronous one has to get going first, and is charged for it."""
TRAIN_S = 0.5
MEAN_S = math.exp(0.5)


def config(bound: int) -> RunConfig:
    """As many rollouts in flight as a batch has, which is the default."""
    return RunConfig.model_validate(
        {
            "model": {"name": "tiny"},
            "environments": [{"id": "acme/digits"}],
            "max_steps": STEPS[bound],
            "batch_size": BATCH,
            "rollouts_per_example": GROUP_SIZE,
            "max_off_policy_steps": bound,
        }
    )


class SlowEnvironment:
    """Latencies from one seed, in the order in which rollouts are started."""

    def __init__(self, seed: int) -> None:
        self._luck = random.Random(seed)

    async def play(self, request: RolloutRequest, environment: ScriptedEnvironment) -> RolloutEnd:
        paid = float(self._luck.random() < 0.5)
        if not await environment.take(request.rollout_id, self._luck.lognormvariate(0.0, 1.0)):
            return RolloutEnd(state="cancelled")
        return good(environment.say(request), paid)


async def _train(_: int) -> None:
    await asyncio.sleep(TRAIN_S)


@cache
def step_s(bound: int, seed: int) -> float:
    """Virtual seconds of a step, from the start of the run to its end. Raises Disagreement where not every step was trained in
    full, within the bound."""

    async def wall_s() -> float:
        began_s = asyncio.get_running_loop().time()
        finish = await run.attempt()
        if finish.outcome != "completed":
            raise Disagreement(f"the run with bound {bound} ended as {finish.outcome}: {finish.message}")
        return asyncio.get_running_loop().time() - began_s

    with tempfile.TemporaryDirectory() as folder:
        run = ScriptedRun(config(bound), Path(folder), SlowEnvironment(seed).play)
        run.trainer.before_step = _train
        taken_s = run_virtually(wall_s())
    _require_equal_work(run, bound)
    return taken_s / STEPS[bound]


def _require_equal_work(run: ScriptedRun, bound: int) -> None:
    for step, samples in run.samples().items():
        oldest = min(min(sample.policy_versions) for sample in samples)
        if len(samples) < BATCH or step - 1 - oldest > bound:
            raise Disagreement(f"step {step} of bound {bound} has {len(samples)} samples, the oldest of version {oldest}")


def sooner(trials: int) -> list[float]:
    return [step_s(0, seed) / step_s(BOUND, seed) for seed in range(trials)]


def share_of_limit(trials: int) -> list[float]:
    """No step can be shorter than the trainer's, nor than a batch of rollouts at full places: batch × mean ÷ places."""
    limit_s = max(TRAIN_S, BATCH * MEAN_S / BATCH)
    return [limit_s / step_s(BOUND, seed) for seed in range(trials)]


def rows() -> list[Row]:
    shape = f"lognormal(1) environment on a virtual clock, bound {BOUND}"
    return [
        Row("P11.wall", f"synchronous ÷ asynchronous wall clock, {shape}", "itself, bound 0", Bound("higher", 4, 5.8), sooner),
        Row(
            "P11.limit",
            f"share of the least step time that the places in flight allow, {shape}",
            "batch × mean latency ÷ places",
            Bound("higher", 0.85, 0.95),
            share_of_limit,
        ),
    ]
