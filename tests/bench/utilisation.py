"""P13: the share of time in which a trainer computes, with eight runs that alone would keep it busy for 15 % each.

The service's desk with its pack loop, on the wall clock: each run sends a batch, waits for its answer, and then for its rollouts,
which take 1/0.15 − 1 times what a step alone takes, give or take half of that at random. Busy is the time inside passes; files
are written beside them, as in the service.
"""

import asyncio
import random
import statistics
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from tests.bench.packing import RUNS
from tests.bench.rows import Bound, Row
from tests.bench.sizes import RANK, size
from tests.bench.training_batches import OPTIMIZER, batch, token_rows
from tests.numerics.recorded import TEAM, run_id
from trainer.contracts.adapters import LoraSpec
from trainer.contracts.training import OpenRun, StepRequest
from trainer.core.llama import Llama
from trainer.core.pool import Pool, PoolLimits
from trainer.core.steps import Pack
from trainer.service.desk import Desk

BUSY_SHARE = 0.15
TOKENS = 512
STEPS_ALONE = 5
WINDOW_STEPS = 48
"""Of one run alone: so long is watched, after as long as all runs need to be under way."""


class WatchedPool(Pool):
    """Notes when passes began and ended."""

    spans: list[tuple[float, float]]

    def pass_over(self, pack: Pack) -> None:
        began_s = time.monotonic()
        super().pass_over(pack)
        self.spans.append((began_s, time.monotonic()))

    def busy_s(self, since_s: float, until_s: float) -> float:
        return sum(max(0.0, min(end, until_s) - max(begin, since_s)) for begin, end in self.spans)


class Runs:
    def __init__(self, key: str, seed: int) -> None:
        root = Path(tempfile.mkdtemp(dir=size(key).root))
        self.pool = WatchedPool(Llama(size(key).model), base_model="bench", artifact_root=root, limits=PoolLimits(slots=RUNS))
        self.pool.spans = []
        self._desk = Desk(self.pool, base_model="bench", window_s=0.02)
        self._rng = random.Random(seed)
        self._names = [run_id(f"busy{index}") for index in range(RUNS)]

    async def utilisation(self) -> float:
        packing = asyncio.create_task(self._desk.loop.run())
        try:
            await self._open(self._names[0])
            step_s = await self._alone_s()
            for name in self._names[1:]:
                await self._open(name)
            rollouts_s = step_s * (1 / BUSY_SHARE - 1)
            loops = [asyncio.create_task(self._steps(name, rollouts_s)) for name in self._names]
            await asyncio.sleep(rollouts_s * 2)
            since_s = time.monotonic()
            await asyncio.sleep(WINDOW_STEPS * step_s)
            until_s = time.monotonic()
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
            return self.pool.busy_s(since_s, until_s) / (until_s - since_s)
        finally:
            packing.cancel()
            with suppress(asyncio.CancelledError):
                await packing

    async def _open(self, name: str) -> None:
        await self._desk.open(name, OpenRun(team_id=TEAM, fencing_token=1, lora=LoraSpec(rank=RANK), optimizer=OPTIMIZER))

    async def _alone_s(self) -> float:
        """What the passes of one step of one run take, the first one apart."""
        found = []
        for _ in range(STEPS_ALONE):
            before = len(self.pool.spans)
            await self._step(0)
            found.append(sum(end - begin for begin, end in self.pool.spans[before:]))
        return statistics.median(found[1:])

    async def _steps(self, name: str, rollouts_s: float) -> None:
        index = self._names.index(name)
        await asyncio.sleep(self._rng.uniform(0, rollouts_s))
        while True:
            await self._step(index)
            await asyncio.sleep(rollouts_s * self._rng.uniform(0.5, 1.5))

    async def _step(self, index: int) -> None:
        name = self._names[index]
        given = batch(name, self.pool.tenant(name).step + 1, token_rows(index, TOKENS))
        await self._desk.step(name, StepRequest(fencing_token=1, batch=given))


def p13(key: str, trials: int) -> list[float]:
    return [asyncio.run(Runs(key, seed).utilisation()) for seed in range(trials)]


def rows() -> list[Row]:
    what = f"share of wall time in passes, {RUNS} runs that alone make it {BUSY_SHARE}, {TOKENS} tokens a step"
    return [Row("P13.4m", what, f"one run: {BUSY_SHARE}", Bound("higher", 0.85, 0.95), lambda trials: p13("4m", trials))]
