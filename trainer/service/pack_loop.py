"""The loop that packs what is ready: one thread computes, the event loop stays free to answer.

Knows when to wait and for whom. Refuses to know leases, files and what a step is worth.

The window, in full: a job that arrives while other runs are open and have nothing waiting is held back, so that their batch
can share its passes, until every open run has a job or `window_s` has passed since the oldest waiting job arrived. A job that
arrives while a pack computes joins the next pack. Nobody waits longer for anybody.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from time import monotonic

from trainer.core.pool import Pool
from trainer.core.steps import Pack, StepJob

log = logging.getLogger(__name__)


@dataclass
class PackCounts:
    """Forward/backward passes so far; `shared_by` counts those of two and more runs by who was in them."""

    packs: int = 0
    packs_shared: int = 0
    shared_by: Counter[str] = field(default_factory=Counter)

    def add(self, pack: Pack) -> None:
        self.packs += 1
        if len(pack.jobs) > 1:
            self.packs_shared += 1
            self.shared_by[",".join(pack.run_ids)] += 1


class PackLoop:
    def __init__(self, pool: Pool, *, window_s: float, open_runs: Callable[[], int]) -> None:
        self.counts = PackCounts()
        self.alive = False
        self._pool = pool
        self._window_s = window_s
        self._open_runs = open_runs
        self._waiting: dict[StepJob, asyncio.Future[None]] = {}
        self._alone: set[StepJob] = set()
        self._arrived = asyncio.Event()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="packs")

    async def train(self, job: StepJob) -> None:
        """Return once the job's gradient is complete. Raises what its own rows raised."""
        future = asyncio.get_running_loop().create_future()
        self._waiting[job] = future
        self._arrived.set()
        try:
            await future
        finally:
            self._waiting.pop(job, None)
            self._alone.discard(job)

    async def run(self) -> None:
        """Pack until cancelled."""
        self.alive = True
        try:
            while True:
                await self._gather()
                await self._train_pack()
        finally:
            self.alive = False
            self._thread.shutdown(wait=True)

    async def _gather(self) -> None:
        while not self._waiting:
            self._arrived.clear()
            await self._arrived.wait()
        deadline = min(job.created for job in self._waiting) + self._window_s
        while len(self._waiting) < self._open_runs() and (left_s := deadline - monotonic()) > 0:
            self._arrived.clear()
            try:
                await asyncio.wait_for(self._arrived.wait(), left_s)
            except TimeoutError:
                return

    async def _train_pack(self) -> None:
        jobs = [job for job, future in self._waiting.items() if not future.done()]
        if not jobs:
            return
        suspect = next((job for job in jobs if job in self._alone), None)
        pack = self._pool.next_pack([suspect] if suspect else jobs)
        try:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._pool.pass_over, pack)
        except Exception as problem:
            self._part_company(pack, problem)
            return
        self.counts.add(pack)
        for job in pack.jobs:
            if job.done and (future := self._waiting.pop(job, None)) is not None and not future.done():
                future.set_result(None)

    def _part_company(self, pack: Pack, problem: Exception) -> None:
        """A pass that raised is taken again by each of its runs alone, from a clean gradient, so that one fails at most."""
        log.error("a pack of runs %s raised", ", ".join(pack.run_ids), exc_info=problem)
        for job in pack.jobs:
            job.restart()
            if len(pack.jobs) > 1:
                self._alone.add(job)
            elif (future := self._waiting.pop(job, None)) is not None and not future.done():
                future.set_exception(problem)
