"""Steps in progress and the choice of what goes into the next pack.

Knows token budgets and fairness between runs. Refuses to know threads and files.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

from trainer.contracts.samples import TrainBatch
from trainer.core.packs import Accumulation, PackPart
from trainer.core.probe import Probe
from trainer.core.streams import BatchStreams, SampleStreams
from trainer.core.tenants import Tenant


class StepJob:
    """One run's batch on its way through packs."""

    def __init__(self, tenant: Tenant, batch: TrainBatch, streams: BatchStreams) -> None:
        self.tenant = tenant
        self.batch = batch
        self.streams = streams
        self.accumulation = Accumulation(tenant.adapter, tenant.spec.loss, streams.denominators, Probe.of(streams))
        self.created = monotonic()
        self.started: float | None = None
        self.restart()

    @property
    def done(self) -> bool:
        return self.taken == len(self.streams.samples)

    @property
    def tokens_taken(self) -> int:
        return sum(sample.length for sample in self.streams.samples[: self.taken])

    def take(self, count: int) -> Sequence[SampleStreams]:
        self.started = self.started if self.started is not None else monotonic()
        samples = self.streams.samples[self.taken : self.taken + count]
        self.taken += count
        return samples

    def timings(self) -> dict[str, float]:
        """Seconds from the first pack on, and before it."""
        started = self.started if self.started is not None else monotonic()
        return {"step_s": monotonic() - started, "queue_s": started - self.created}

    def restart(self) -> None:
        """Forget what packs have added so far."""
        self.taken = self.packs = self.packs_shared = 0
        self.accumulation.restart()


@dataclass(frozen=True)
class Pack:
    """What one forward and backward pass carries: one part per job, in the same order."""

    jobs: tuple[StepJob, ...]
    parts: tuple[PackPart, ...]

    @property
    def run_ids(self) -> tuple[str, ...]:
        return tuple(sorted(job.tenant.run_id for job in self.jobs))


def next_pack(jobs: Sequence[StepJob], budget_tokens: int) -> Pack:
    """The next samples of the jobs, within the budget, sorted by run. A sample longer than the budget goes alone.

    Deficit round-robin by tokens: the turn is always that of the job that had the fewest of its tokens trained, so a long batch
    cannot hold up a short one, and a sample that did not fit goes first next time. A turn is worth half a pack: that keeps runs
    within half a pack and one sample of each other, and a run's rows together, which is quicker than a few rows of everybody.
    """
    trained = {job: job.tokens_taken for job in jobs}
    counts = dict.fromkeys(jobs, 0)
    room, turn_tokens = budget_tokens, max(1, budget_tokens // 2)
    full = False
    while not full and (waiting := [job for job in jobs if job.taken + counts[job] < len(job.streams.samples)]):
        job = min(waiting, key=lambda job: trained[job])
        turn = 0
        for sample in job.streams.samples[job.taken + counts[job] :]:
            full = sample.length > room and room < budget_tokens
            if full or (turn and turn + sample.length > turn_tokens):
                break
            room -= sample.length
            turn += sample.length
            counts[job] += 1
        trained[job] += turn
    chosen = tuple(job for job in jobs if counts[job])
    for job in chosen:
        job.packs += 1
        job.packs_shared += len(chosen) > 1
    return Pack(chosen, tuple(PackPart(job.accumulation, job.take(counts[job])) for job in chosen))
