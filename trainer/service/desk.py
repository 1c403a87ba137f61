"""What the service does for a run: open, step, checkpoint, close; each under the run's lock and its fencing token.

Knows the order of checks, and which thread does what: passes belong to the pack loop's thread, files to the default threads.
Refuses to know HTTP.
"""

import asyncio
import logging
import os
from time import monotonic
from weakref import WeakValueDictionary

from trainer.contracts.samples import TrainBatch
from trainer.contracts.training import (
    CheckpointRequest,
    CheckpointWritten,
    OpenRun,
    RunOpened,
    StepRequest,
    StepResult,
    TrainerHealth,
    TrainerStats,
)
from trainer.core.errors import BadBatch, NoFreeSlot, RunNotOpen
from trainer.core.pool import Pool
from trainer.core.tenants import RunSpec, Tenant
from trainer.core.warm_start import Beginning
from trainer.service.fences import Fences
from trainer.service.pack_loop import PackLoop

log = logging.getLogger(__name__)

SLOT_IDLE_S = 900.0
"""A slot whose run has not been heard of for so long may be given to another; its run continues by opening again."""


class Desk:
    def __init__(self, pool: Pool, *, base_model: str, window_s: float) -> None:
        self.pool = pool
        self.base_model = base_model
        self.loop = PackLoop(pool, window_s=window_s, open_runs=self._open_count)
        self._fences = Fences(pool.root)
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._slots_lock = asyncio.Lock()
        self._heard_at: dict[str, float] = {}

    async def open(self, run_id: str, request: OpenRun) -> RunOpened:
        """Claim a slot under the request's token, and take the logged steps that the run is behind."""
        spec = RunSpec(
            team_id=request.team_id, lora=request.lora, optimizer=request.optimizer, loss=request.loss, seed=request.seed
        )
        async with self._lock(run_id):
            self._fences.admit(run_id, request.fencing_token)
            self._heard_at[run_id] = monotonic()
            tenant = await self._claim(run_id, spec, Beginning(request.init_from, request.is_fork))
            try:
                await self._replay(tenant)
                return await asyncio.to_thread(self.pool.settle, run_id)
            except Exception:
                self._forget(run_id)  # half-replayed state must not take a step
                raise

    async def step(self, run_id: str, request: StepRequest) -> StepResult:
        """Train the batch of the run's next step, or repeat the answer of one that is done."""
        batch = request.batch
        if batch.run_id != run_id:
            raise BadBatch(f"batch.run_id: {batch.run_id} is not the run of this request")
        async with self._lock(run_id):
            self._check(run_id, request.fencing_token)
            answered = await asyncio.to_thread(self.pool.answered, run_id, batch.step)
            if answered is not None:
                return answered
            _refuse_artifacts(batch)
            job = await asyncio.to_thread(self.pool.prepare, batch)
            try:
                await self.loop.train(job)
            except BaseException:
                job.restart()  # whatever was accumulated must not enter the next step
                raise
            return await asyncio.to_thread(self.pool.commit, job)

    async def checkpoint(self, run_id: str, request: CheckpointRequest) -> CheckpointWritten:
        async with self._lock(run_id):
            self._check(run_id, request.fencing_token)
            return await asyncio.to_thread(self.pool.checkpoint, run_id)

    async def close(self, run_id: str, fencing_token: int) -> None:
        """Free the run's slot. Closing a run that is not open is not an error: the caller wants it gone."""
        async with self._lock(run_id):
            self._fences.check(run_id, fencing_token)
            self._forget(run_id)

    def health(self) -> TrainerHealth:
        return TrainerHealth(
            status="ok" if self.loop.alive else "failed",
            pid=os.getpid(),
            base_model=self.base_model,
            base_digest=self.pool.base_digest,
            slots_total=len(self.pool.slots),
            slots_used=self._open_count(),
            passes=self.loop.counts.packs,
        )

    async def stats(self) -> TrainerStats:
        counts = self.loop.counts
        return TrainerStats(
            packs=counts.packs,
            packs_shared=counts.packs_shared,
            shared_by=dict(counts.shared_by),
            base_digest_now=await asyncio.to_thread(self.pool.model.digest_now),
        )

    def _lock(self, run_id: str) -> asyncio.Lock:
        return self._locks.setdefault(run_id, asyncio.Lock())

    def _check(self, run_id: str, fencing_token: int) -> None:
        self._fences.check(run_id, fencing_token)
        self.pool.tenant(run_id)
        self._heard_at[run_id] = monotonic()

    def _open_count(self) -> int:
        return sum(tenant is not None for tenant in self.pool.slots)

    async def _claim(self, run_id: str, spec: RunSpec, beginning: Beginning) -> Tenant:
        async with self._slots_lock:
            try:
                return await asyncio.to_thread(self.pool.claim, run_id, spec, beginning)
            except NoFreeSlot:
                if not await self._evict_idle():
                    raise
                return await asyncio.to_thread(self.pool.claim, run_id, spec, beginning)

    async def _evict_idle(self) -> bool:
        """Checkpoint and release the run that was silent longest, if it was silent long enough."""
        silent = {t.run_id: monotonic() - self._heard_at[t.run_id] for t in self.pool.slots if t is not None}
        run_id = max(silent, key=lambda run_id: silent[run_id])
        lock = self._lock(run_id)
        if silent[run_id] < SLOT_IDLE_S or lock.locked():
            return False
        async with lock:
            log.warning("run %s gave up its slot after %.0f silent seconds", run_id, silent[run_id])
            await asyncio.to_thread(self.pool.checkpoint, run_id)
            self._forget(run_id)
        return True

    async def _replay(self, tenant: Tenant) -> None:
        while (job := await asyncio.to_thread(self.pool.next_logged, tenant)) is not None:
            await self.loop.train(job)
            await asyncio.to_thread(self.pool.commit, job, logged=True)

    def _forget(self, run_id: str) -> None:
        self._heard_at.pop(run_id, None)
        try:
            self.pool.release(run_id)
        except RunNotOpen:
            return


def _refuse_artifacts(batch: TrainBatch) -> None:
    """The base models of this trainer are dense and read text alone: to leave out what a rollout was made with would be to train
    on something else."""
    for number, sample in enumerate(batch.samples):
        for name, use in (("routed_experts", "routes no experts"), ("multimodal", "reads text alone")):
            if getattr(sample, name) is not None:
                raise BadBatch(f"samples.{number}.{name}: the base model {use}; train a model that can use it")
