"""A training run: groups in, batches out, one optimizer step after the other, while rollouts go on.

Knows the order of things and what survives a crash. Refuses to know how any single thing is done.

One step, and what is durable after each line:

  cut        groups are taken from the book; rollouts go on being made for the next batch
  journal    the step's record is on disk: batch, rollouts, usage, task cursors, what algorithms and curricula remember
  train      the trainer has committed version `step` (idempotent by run and step)
  publish    every engine has the version; new groups are dispatched on it
  report     rollouts, usage, version, then the STEP event (each idempotent); the record may go

The trainer is authoritative about which step was last, the control plane about which step was last reported, and the journal
closes every gap between them. After a crash the new attempt replays the records behind the control plane's step through the same
lines: a step that the trainer has committed is answered from its log, a step that it has not is trained from the recorded batch.
So the same rollouts are trained once, reported once and paid once, wherever the process died. Only rollouts in flight are lost;
they are in no record and on no bill.
"""

import asyncio
import time
from dataclasses import dataclass

from trainer.contracts.events import Component, EventKind, FailureCode, RunState
from trainer.contracts.internal import CheckpointReport, RunPosition, UsageBatch
from trainer.contracts.run_config import RunConfig
from trainer.contracts.samples import TrainSample
from trainer.contracts.training import RunOpened, StepResult
from trainer.orchestrator.attempt.endings import AttemptOver, failed
from trainer.orchestrator.datasets.feed import DatasetFeed, TakenRows
from trainer.orchestrator.engines.policies import Policy
from trainer.orchestrator.engines.publishing import Publisher
from trainer.orchestrator.environments.curriculum import CurriculumState
from trainer.orchestrator.evals.beside_training import RunEvals
from trainer.orchestrator.groups.book import GroupBook
from trainer.orchestrator.groups.dispatch import Dispatcher
from trainer.orchestrator.groups.filters import RolloutFilters
from trainer.orchestrator.groups.scoring import GroupScorer
from trainer.orchestrator.rollouts.records import rollout_batch, rollout_usage
from trainer.orchestrator.rollouts.rollout import Accounted, Group
from trainer.orchestrator.rollouts.unclaimed import unclaimed_rollouts
from trainer.orchestrator.steps.batches import cut_batch
from trainer.orchestrator.steps.divergence import CALM_STEPS, DivergenceAlarm
from trainer.orchestrator.steps.journal import StepJournal, StepRecord
from trainer.orchestrator.steps.metrics import cut_metrics
from trainer.orchestrator.steps.reports import StepReport, StepReports, version_report
from trainer.orchestrator.steps.trainer_client import TrainerClient
from trainer.orchestrator.workplace import Workplace

STANDSTILL_STEPS = 10


@dataclass(frozen=True, slots=True)
class Newest:
    """The newest published version; `path` is relative to the artifact root."""

    policy: Policy
    path: str
    size_bytes: int


class Run:
    """`train` returns only by raising AttemptOver; `wind_up` then leaves things so that another attempt can go on."""

    def __init__(
        self,
        place: Workplace,
        config: RunConfig,
        *,
        trainer: TrainerClient,
        publisher: Publisher,
        book: GroupBook,
        dispatcher: Dispatcher,
        journal: StepJournal,
        reports: StepReports,
        evals: RunEvals,
        scorer: GroupScorer,
        filters: RolloutFilters,
        feed: DatasetFeed,
    ):
        self._place = place
        self._config = config
        self._trainer = trainer
        self._publisher = publisher
        self._book = book
        self._dispatcher = dispatcher
        self._journal = journal
        self._reports = reports
        self._evals = evals
        self._scorer = scorer
        self._filters = filters
        self._feed = feed
        self._step = 0
        self._checkpointed = -1
        self._newest: Newest | None = None
        self._position: RunPosition | None = None
        self._unchanged = 0
        self._alarm = DivergenceAlarm(learning_rate=config.learning_rate)
        self.is_stepping = False
        self.progress_s = time.monotonic()

    async def resume(self) -> None:
        """Claim the trainer's slot, replay what was not reported, publish the newest version."""
        self._place.phase("claiming a slot on the trainer", Component.TRAINER)
        opened = await self._trainer.open(await asyncio.to_thread(self._feed.steps_until_over, self._config.max_steps))
        await asyncio.to_thread(self._journal.sweep)
        self._step = opened.step
        replayed = await self._replay(opened)
        if not replayed:
            await self._publish_opened(opened)
        newest = await asyncio.to_thread(self._journal.newest)
        if (position := newest.position() if newest is not None else self._place.spec.position) is not None:
            self._go_on_at(position)
        self._dispatcher.next_step = self._step + 1
        if self._step and self._step % self._config.checkpoints.interval == 0:
            await self._checkpoint()  # the attempt before may have died between the checkpoint and its report

    def _go_on_at(self, position: RunPosition) -> None:
        curricula = {name: CurriculumState.model_validate(state) for name, state in position.curricula.items()}
        self._dispatcher.resume_at(position.cursors, curricula)
        self._feed.resume_at(position.dataset_cursors)
        self._scorer.restore(position.algorithm_state)
        self._position = position

    async def train(self) -> None:
        """Step until the last one. Raises AttemptOver."""
        self._place.reporter.emit(EventKind.STATE, {"state": RunState.RUNNING, "reason": ""}, step=self._step)
        await self._evals.maybe_start(self._step)
        while self._step < self._config.max_steps and not self._feed.is_over:
            started_s = time.monotonic()
            rows = await asyncio.to_thread(self._feed.take, self._step + 1)
            groups = await self._next_groups(self._step + 1)
            record = self._record(self._step + 1, groups, rows, wait_s=time.monotonic() - started_s)
            await asyncio.to_thread(self._journal.write, record)
            self.is_stepping = True
            await self._commit(record)
            self.is_stepping = False
            self._check_standstill()
            if self._config.pause_on_divergence and (ending := self._alarm.ending()) is not None:
                raise ending
            if self._step % self._config.checkpoints.interval == 0:
                await self._checkpoint()
            await self._evals.maybe_start(self._step)
        self._place.phase("waiting for the last evaluation", Component.EVAL)
        await self._evals.finished()
        raise AttemptOver("completed", f"{self._step} steps are done")

    async def wind_up(self) -> None:
        """After the end: report what is unsent, account what is left, keep the newest version and a checkpoint, free the slot."""
        await self._reports.drain()
        await self._report_rest()
        if self._newest is not None and self._step > 0:
            report = version_report(self._newest.policy, self._newest.path, self._newest.size_bytes)
            await self._place.control.version(report.model_copy(update={"keep": True}))
        if self._checkpointed != self._step:
            await self._checkpoint()
        await self._publisher.retire(set())
        await self._trainer.close()

    async def _replay(self, opened: RunOpened) -> bool:
        """Run recorded steps behind the control plane's newest one through the same lines again."""
        resumed = self._place.spec.resume_step
        step = resumed
        while (record := await asyncio.to_thread(self._journal.read, step + 1)) is not None and step <= opened.step:
            self._place.phase(f"replaying step {step + 1} from the journal", Component.TRAINER)
            await self._commit(record)
            step += 1
        if opened.step < resumed:
            message = f"the trainer's newest committed step is {opened.step}; steps up to {resumed} are taken again"
            self._place.reporter.emit(EventKind.WARNING, {"message": message})
        if step < opened.step:
            self._place.reporter.emit(
                EventKind.WARNING,
                {"message": f"steps {step + 1} to {opened.step} were trained by an earlier attempt whose report is lost"},
            )
            return False
        return step > resumed

    async def _publish_opened(self, opened: RunOpened) -> None:
        policy = self._publisher.policy(opened.step, opened.adapter_digest, opened.adapter_path)
        self._place.phase("loading the adapter on the inference servers", Component.ENGINE)
        await self._publisher.publish(policy)
        self._newest = Newest(policy, opened.adapter_path, self._publisher.size_bytes(opened.adapter_path))
        if opened.step == 0:
            await self._place.control.version(version_report(policy, opened.adapter_path, self._newest.size_bytes))

    async def _next_groups(self, step: int) -> list[Group]:
        """The groups of the next batch, as soon as there are enough. Raises AttemptOver when the owner wants an end."""
        self._dispatcher.next_step = step
        await self._dispatcher.drop_stale()
        self._place.phase(f"step {step}: collecting rollouts", Component.ENVIRONMENT)
        while True:
            self._place.status.inflight = self._book.inflight_count
            if (ending := self._place.desire.ending()) is not None:
                raise ending
            groups = self._book.cut(self._config.rollouts_per_batch(), step=step)
            if groups is not None:
                self._dispatcher.next_step = step + 1
                await self._dispatcher.drop_stale()
                return groups
            self._dispatcher.changed.clear()
            await _first_of(self._dispatcher.changed, self._place.desire.changed)

    def _record(self, step: int, groups: list[Group], rows: TakenRows, *, wait_s: float) -> StepRecord:
        cut = cut_batch(self._place.spec.subject_id, step, groups, rows.samples)
        if cut.broken_prefixes or cut.left_out:
            self._place.reporter.log(
                f"step {step}: {cut.broken_prefixes} turns began a new branch because their history had changed; "
                f"{cut.left_out} branches do not fit",
                level="warning",
            )
        accounted = self._accounted()
        return StepRecord(
            run_id=self._place.spec.subject_id,
            step=step,
            attempt=self._place.spec.attempt,
            segment=self._place.spec.segment,
            batch=cut.batch,
            rollouts=rollout_batch(accounted, step=step, texts=self._place.texts),
            usage=rollout_usage(accounted, sequence=str(step)),
            metrics=cut_metrics(accounted, broken_prefixes=cut.broken_prefixes, groups=groups)
            | self._filters.take_counts()
            | self._dispatcher.limit.take_metrics()
            | self._dispatcher.take_task_metrics()
            | rows.metrics,
            cursors=self._dispatcher.cursors(),
            dataset_cursors=self._feed.cursors(),
            algorithm_state=self._scorer.state(),
            curricula=self._dispatcher.curricula(),
            wait_s=wait_s,
        )

    def _accounted(self) -> list[Accounted]:
        """Everything accounted since the last cut, and the model calls that belong to no rollout any more."""
        oldest_s = min((rollout.started_s for rollout in self._book.inflight()), default=time.monotonic())
        return self._book.take_accounted() + unclaimed_rollouts(self._place.sessions.unclaimed(oldest_s))

    async def _commit(self, record: StepRecord) -> None:
        """Train, publish, hand over to the report."""
        self._place.phase(f"step {record.step}: training on {len(record.batch.samples)} samples", Component.TRAINER)
        started_s = time.monotonic()
        result = await self._trainer.step(record.batch)
        train_s = time.monotonic() - started_s
        policy = self._publisher.policy(result.step, result.adapter_digest, result.adapter_path)
        self._place.turn_of(Component.ENGINE)
        published = await self._publisher.publish(policy)
        self._step = self._place.status.step = result.step
        self._notice_standstill(record, result)
        self._notice_divergence(record, result)
        self._newest = Newest(policy, result.adapter_path, result.size_bytes)
        self._position = record.position()
        self.progress_s = time.monotonic()
        self._dispatcher.wake()
        self._place.turn_of(Component.API)
        await self._reports.put(StepReport(record, result, policy, published, train_s))

    def _notice_standstill(self, record: StepRecord, result: StepResult) -> None:
        """Count the steps in a row that had something to learn and did not move the adapter."""
        learns = any(any(stream or ()) for sample in record.batch.samples for stream in _pulls(sample))
        same = self._newest is not None and self._newest.policy.digest == result.adapter_digest
        self._unchanged = self._unchanged + 1 if same and learns else 0

    def _check_standstill(self) -> None:
        """Raises AttemptOver when rollouts have long been paid for and taught nothing."""
        if self._unchanged >= STANDSTILL_STEPS:
            raise failed(
                FailureCode.STALLED,
                f"the adapter has not changed for {STANDSTILL_STEPS} steps that had something to learn, up to step {self._step}. "
                f"Is learning_rate = {self._config.learning_rate:g} too small?",
            )

    def _notice_divergence(self, record: StepRecord, result: StepResult) -> None:
        """Say once when the run begins to fall apart, and once when it has recovered."""
        if not self._alarm.add(result.step, {**record.metrics, **result.metrics}):
            return
        if self._alarm.message is not None:
            self._place.reporter.incident(FailureCode.DIVERGING, self._alarm.message, step=result.step)
        else:
            message = f"step {result.step}: no sign of divergence for {CALM_STEPS} steps"
            self._place.reporter.incident(f"{FailureCode.DIVERGING}_over", message, step=result.step)

    async def _checkpoint(self) -> None:
        written = await self._trainer.checkpoint()
        self._checkpointed = written.step
        await self._place.control.checkpoint(
            CheckpointReport(
                step=written.step,
                path=written.path,
                digest=written.digest,
                size_bytes=written.size_bytes,
                position=self._position,
            )
        )

    async def _report_rest(self) -> None:
        """Rollouts that no batch will train on, so that every one that was dispatched is accounted."""
        accounted = self._accounted()
        self._book.close(ended_s=time.monotonic())
        accounted += self._book.take_accounted()
        if not accounted:
            return
        tag = f"rest-{self._place.spec.attempt}"
        await self._place.control.rollouts(rollout_batch(accounted, step=self._step, tag=tag, texts=self._place.texts))
        usage = rollout_usage(accounted, sequence=f"{self._step}.{tag}")
        if usage:
            await self._place.control.usage(UsageBatch(events=usage))


def _pulls(sample: TrainSample) -> tuple[list[float] | None, ...]:
    """The streams of which any entry but 0 moves the adapter."""
    return sample.advantages, sample.ce_weights, sample.ref_kl_weights


async def _first_of(*events: asyncio.Event) -> None:
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
