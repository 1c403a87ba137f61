"""The pool: one base model, a fixed number of slots, and the durable life of every run in them.

Knows the order in which a step becomes durable, and how a run is found again after a crash. Refuses to know threads, HTTP and
fencing tokens: callers make one call per run at a time.

A step is durable in this order: batch log (from here on it is a step) → parameters and moments in memory → version files →
manifest. A crash between any two leaves a log that replays to the version.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from trainer.contracts.adapters import adapter_path
from trainer.contracts.samples import TrainBatch
from trainer.contracts.training import CheckpointWritten, RunOpened, StepResult
from trainer.core.batch_log import BatchLog
from trainer.core.checkpoints import CheckpointStore
from trainer.core.durable import sweep_temporaries, write_file
from trainer.core.errors import NoFreeSlot, NotServable, RunMismatch, RunNotOpen, StepOutOfOrder
from trainer.core.llama import Llama
from trainer.core.losses import metrics_of
from trainer.core.packs import train_pack
from trainer.core.steps import Pack, StepJob, next_pack
from trainer.core.streams import read_batch, staleness_of
from trainer.core.tenants import SPEC_NAME, RunSpec, Tenant
from trainer.core.versions import StepOutcome, VersionStore
from trainer.core.warm_start import SEEDED, Beginning, fork, warm_start

OWN_FOLDERS = ("adapters", "checkpoints", "batches")
"""Of a run's folder: where the trainer alone writes."""


@dataclass(frozen=True)
class PoolLimits:
    """`pack_tokens` bounds one forward/backward pass: its memory, and how long a run that arrives must wait to be in one.
    Where `strict`, no pack is shared, and a run's arithmetic is bit for bit that of the run alone. With `recompute` a pass keeps
    each layer's input alone and computes the layer again on its way back: the same gradients in less memory."""

    slots: int = 8
    rank_max: int = 64
    context_tokens: int | None = None
    target_modules: tuple[str, ...] | None = None
    pack_tokens: int = 512
    strict: bool = False
    recompute: bool = False


class Pool:
    def __init__(self, model: Llama, *, base_model: str, artifact_root: Path, limits: PoolLimits = PoolLimits()) -> None:
        self.model = model
        self.base_digest = model.digest_now()
        # Adapters, gradients and moments stay in float32 where the base model lies in a narrower type.
        self.adapter_dtype = torch.float32 if model.dtype == torch.bfloat16 else model.dtype
        self.root = artifact_root
        self.limits = limits
        self.slots: list[Tenant | None] = [None] * limits.slots
        self.versions = VersionStore(artifact_root, base_model, self.base_digest)
        self.checkpoints = CheckpointStore(artifact_root, self.base_digest)
        self.batch_log = BatchLog(artifact_root)

    # Runs and slots

    def find(self, run_id: str) -> Tenant | None:
        return next((t for t in self.slots if t is not None and t.run_id == run_id), None)

    def tenant(self, run_id: str) -> Tenant:
        """Raises RunNotOpen."""
        tenant = self.find(run_id)
        if tenant is None:
            raise RunNotOpen(f"run {run_id} is not open in this trainer")
        return tenant

    def claim(self, run_id: str, spec: RunSpec, beginning: Beginning = SEEDED) -> Tenant:
        """A slot for the run, at its newest committed checkpoint or at version 0. Logged steps after that wait in
        `next_logged`. Claiming again finds the same tenant."""
        tenant = self.find(run_id)
        if tenant is not None:
            self._check_spec(run_id, spec)
            return tenant
        if None not in self.slots:
            raise NoFreeSlot(f"all {len(self.slots)} slots are taken")
        self._check_servable(spec)
        tenant = Tenant(run_id, spec, self.model.targets, self.adapter_dtype, self.model.device)
        self._check_spec(run_id, spec)
        self._sweep(self._spec_path(run_id).parent)
        self._load(tenant, beginning)
        write_file(self._spec_path(run_id), spec.model_dump_json(indent=2).encode())
        self.slots[self.slots.index(None)] = tenant
        return tenant

    def settle(self, run_id: str) -> RunOpened:
        """Once no logged step is left: publish the newest version if that is missing, and hold exactly what is published.

        A step that ran in a shared pack may differ from its replay in the last bits; the published bits count.
        """
        tenant = self.tenant(run_id)
        manifest = self.versions.write(run_id, tenant.spec.team_id, tenant.step, tenant.adapter, {})
        self.versions.load(manifest, tenant.adapter)
        return RunOpened(
            run_id=run_id,
            slot=self.slots.index(tenant),
            step=tenant.step,
            adapter_digest=manifest.adapter_digest,
            adapter_path=adapter_path(run_id, tenant.step),
        )

    def open(self, run_id: str, spec: RunSpec, init_from: str | None = None, *, is_fork: bool = False) -> RunOpened:
        """Claim, replay what is logged, settle."""
        tenant = self.claim(run_id, spec, Beginning(init_from, is_fork))
        while (job := self.next_logged(tenant)) is not None:
            self.train([job])
            self.commit(job, logged=True)
        return self.settle(run_id)

    def release(self, run_id: str) -> None:
        """Free the slot; nothing of the run stays in memory. Its files stay."""
        tenant = self.tenant(run_id)
        self.slots[self.slots.index(tenant)] = None
        tenant.clear()

    # Steps

    def answered(self, run_id: str, step: int) -> StepResult | None:
        """What a step that is done answered; None when it is the next one. Raises StepOutOfOrder for any other."""
        done = self.tenant(run_id).step
        if step == done + 1:
            return None
        result = self.versions.result(run_id, step) if step <= done else None
        if result is None:
            raise StepOutOfOrder(f"step {step} was sent, but {done} steps are done")
        return result.model_copy(update={"replayed": True})

    def prepare(self, batch: TrainBatch) -> StepJob:
        """Validate the batch of a run's next step. Raises BadBatch, RunNotOpen, StepOutOfOrder."""
        tenant = self.tenant(batch.run_id)
        if batch.step != tenant.step + 1:
            raise StepOutOfOrder(f"step {batch.step} was sent, but {tenant.step} steps are done")
        shape = self.model.shape
        context = min(shape.context_tokens, self.limits.context_tokens or shape.context_tokens)
        streams = read_batch(batch, vocabulary_size=shape.vocabulary_size, context_tokens=context, dtype=self.adapter_dtype)
        return StepJob(tenant, batch, streams)

    def next_logged(self, tenant: Tenant) -> StepJob | None:
        """The batch log's next step that the tenant has not taken, after a restart."""
        batch = self.batch_log.read(tenant.run_id, tenant.step + 1)
        return None if batch is None else self.prepare(batch)

    def train(self, jobs: Sequence[StepJob]) -> None:
        """Accumulate the gradients of some jobs, in shared packs, until all are complete."""
        while waiting := [job for job in jobs if not job.done]:
            self.pass_over(self.next_pack(waiting))

    def pass_over(self, pack: Pack) -> None:
        """One forward and backward pass: each job's gradient and tally grow by its part."""
        train_pack(self.model, pack.parts, recompute=self.limits.recompute)

    def next_pack(self, jobs: Sequence[StepJob]) -> Pack:
        """What to compute next."""
        if self.limits.strict:
            jobs = [min(jobs, key=lambda job: job.tokens_taken)]
        return next_pack(jobs, self.limits.pack_tokens)

    def commit(self, job: StepJob, *, logged: bool = False) -> StepResult:
        """Make a complete job a step. Raises NonFinite, with nothing changed, when its gradient is not finite.

        A step that cannot be made durable for any other reason leaves memory: opening the run again finds it on disk.
        """
        job.tenant.check_gradient()
        try:
            return self._commit(job, logged)
        except Exception:
            self.release(job.tenant.run_id)
            raise

    def _commit(self, job: StepJob, logged: bool) -> StepResult:
        tenant = job.tenant
        if not logged:
            self.batch_log.append(job.batch)
        metrics = metrics_of(job.accumulation.tally) | staleness_of(job.streams, job.batch.step)
        metrics |= tenant.apply_gradient() | self._step_kl(job) | job.timings()
        outcome = StepOutcome(tenant.run_id, tenant.step, job.streams.tokens, metrics, job.packs, job.packs_shared)
        return self.versions.publish_step(outcome, tenant.spec.team_id, tenant.adapter)

    def _step_kl(self, job: StepJob) -> dict[str, float]:
        probe = job.accumulation.probe
        return {} if probe is None else {"step_kl": probe.change(self.model, job.tenant.adapter)}

    def checkpoint(self, run_id: str) -> CheckpointWritten:
        tenant = self.tenant(run_id)
        return self.checkpoints.write(run_id, tenant.spec.team_id, tenant.step, tenant.spec.lora, tenant.state())

    # How a run is found again

    def _sweep(self, folder: Path) -> None:
        sweep_temporaries(folder, below=False)
        for name in OWN_FOLDERS:
            sweep_temporaries(folder / name)

    def _check_servable(self, spec: RunSpec) -> None:
        """Refuse before the run starts what no engine of the pool could load after it."""
        if spec.lora.rank > self.limits.rank_max:
            raise NotServable(f"lora.rank: {spec.lora.rank} is above this pool's {self.limits.rank_max}")
        refused = set(spec.lora.target_modules) - set(self.limits.target_modules or spec.lora.target_modules)
        if refused:
            raise NotServable(f"lora.target_modules: this pool serves no adapters on {', '.join(sorted(refused))}")

    def _load(self, tenant: Tenant, beginning: Beginning) -> None:
        """A run with state of its own starts from that alone, wherever it was to begin."""
        checkpoint = self.checkpoints.newest(tenant.run_id)
        if checkpoint is not None:
            tenant.restore(checkpoint)
        elif beginning.path is not None and not self._spec_path(tenant.run_id).exists():
            if beginning.is_fork:
                fork(tenant, beginning.path, self.checkpoints)
            else:
                warm_start(tenant, beginning.path, self.versions, self.checkpoints)
            # The source may be gone by the time the run must be found again; a start from a seed needs no such copy.
            self.checkpoints.write(tenant.run_id, tenant.spec.team_id, tenant.step, tenant.spec.lora, tenant.state())

    def _check_spec(self, run_id: str, spec: RunSpec) -> None:
        """Raises RunMismatch when the run was first opened under another specification."""
        path = self._spec_path(run_id)
        if not path.exists():
            return
        first = RunSpec.model_validate_json(path.read_bytes())
        changed = [name for name in RunSpec.model_fields if getattr(first, name) != getattr(spec, name)]
        if changed:
            raise RunMismatch(f"run {run_id} was opened with another {', '.join(changed)}")

    def _spec_path(self, run_id: str) -> Path:
        return self.root / "runs" / run_id / SPEC_NAME
