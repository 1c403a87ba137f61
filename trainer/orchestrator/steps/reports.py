"""Telling the control plane about committed steps, in order, while the next batch is already being made.

Knows what a step's report consists of. Refuses to know how the step came about. The STEP event goes last: the newest step that
the control plane holds is one whose rollouts, usage and version it holds too. A report that was cut off is sent again whole;
every part of it is idempotent.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from trainer.contracts.events import Component, EventKind, Meter
from trainer.contracts.internal import UsageBatch, UsageIn, VersionReport
from trainer.contracts.training import StepResult
from trainer.orchestrator.attempt.control import ControlClient
from trainer.orchestrator.attempt.reporting import Reporter
from trainer.orchestrator.engines.client import Published
from trainer.orchestrator.engines.policies import Policy
from trainer.orchestrator.engines.publishing import Publisher
from trainer.orchestrator.steps.journal import StepJournal, StepRecord
from trainer.orchestrator.steps.metrics import commit_metrics

WAITING_MAX = 4


@dataclass(slots=True)
class StepReport:
    record: StepRecord
    result: StepResult
    policy: Policy
    published: Published
    train_s: float
    emitted: bool = False


class StepReports:
    """`segment` pays for the usage; `versions_in_use` says what may not be unloaded."""

    def __init__(
        self,
        control: ControlClient,
        reporter: Reporter,
        journal: StepJournal,
        publisher: Publisher,
        *,
        segment: int,
        versions_in_use: Callable[[], set[int]],
    ):
        self._control = control
        self._reporter = reporter
        self._journal = journal
        self._publisher = publisher
        self._segment = segment
        self._versions_in_use = versions_in_use
        self._waiting: deque[StepReport] = deque()
        self._changed = asyncio.Condition()

    async def put(self, report: StepReport) -> None:
        """Waits while too many reports are unsent: training never runs far ahead of its bookkeeping."""
        async with self._changed:
            await self._changed.wait_for(lambda: len(self._waiting) < WAITING_MAX)
            self._waiting.append(report)
            self._changed.notify_all()

    async def run(self) -> None:
        """Send until cancelled. Raises StaleLease."""
        while True:
            async with self._changed:
                await self._changed.wait_for(lambda: bool(self._waiting))
            await self.drain()
            async with self._changed:
                self._changed.notify_all()
            await self._publisher.retire(self._versions_in_use())

    async def drain(self) -> None:
        while self._waiting:
            await self._send(self._waiting[0])
            self._waiting.popleft()

    async def _send(self, report: StepReport) -> None:
        record, result = report.record, report.result
        await self._control.rollouts(record.rollouts)
        await self._send_usage(record, result)
        await self._control.version(version_report(report.policy, result.adapter_path, result.size_bytes))
        if not report.emitted:
            self._emit(report)
            report.emitted = True
        await self._reporter.flush()
        self._journal.forget_before(record.step)

    async def _send_usage(self, record: StepRecord, result: StepResult) -> None:
        """A record of an earlier segment is not charged to this one: its owner has restarted, and pays for what is new."""
        if record.segment != self._segment:
            return
        trained = UsageIn(meter=Meter.TRAINING_TOKENS, sequence=str(record.step), quantity=result.tokens, at=datetime.now(UTC))
        await self._control.usage(UsageBatch(events=[*record.usage, trained]))

    def _emit(self, report: StepReport) -> None:
        step, published = report.record.step, report.published
        times_s = {"wait": report.record.wait_s, "train": report.train_s, "publish": published.load_s}
        metrics = commit_metrics(report.record.metrics, report.result, times_s)
        metrics["requests_in_flight_at_swap"] = published.requests_in_flight
        version = {
            "version": step,
            "adapter_digest": report.policy.digest,
            "requests_in_flight": published.requests_in_flight,
            "load_s": published.load_s,
        }
        self._reporter.emit(EventKind.VERSION, version, step=step)
        payload = {"metrics": metrics, "version": step, "adapter_digest": report.policy.digest}
        self._reporter.emit(EventKind.STEP, payload, step=step)
        self._log(report, metrics)

    def _log(self, report: StepReport, metrics: dict[str, float]) -> None:
        """One line for each machine that had a part in the step."""
        step, result, published = report.record.step, report.result, report.published
        self._reporter.log(
            f"step {step}: {len(report.record.batch.samples)} samples trained in {metrics['time/train_s']:.2f} s after "
            f"{metrics['time/trainer_queue_s']:.2f} s in the queue; {result.packs_shared} of {result.packs} packs were shared "
            "with other runs",
            component=Component.TRAINER,
        )
        self._reporter.log(
            f"version {step} was loaded in {published.load_s:.2f} s; {published.requests_in_flight} requests in flight stayed "
            "on older versions",
            component=Component.ENGINE,
        )
        self._reporter.log(
            f"step {step}: {_gist(metrics)}, {result.tokens} tokens, "
            f"staleness {metrics.get('staleness_mean', 0):.1f}, {metrics['step_time_s']:.1f} s "
            f"(wait {metrics['wait_s']:.1f}, train {metrics['train_s']:.1f}, publish {metrics['publish_s']:.2f})"
        )


def _gist(metrics: dict[str, float]) -> str:
    """The reward, where anything was rewarded."""
    name = "reward" if "reward" in metrics else "loss"
    return f"{name} {metrics.get(name, float('nan')):.3f}"


def version_report(policy: Policy, path: str, size_bytes: int) -> VersionReport:
    return VersionReport(
        version=policy.version,
        step=policy.version,
        adapter_digest=policy.digest,
        path=path,
        size_bytes=size_bytes,
        keep=policy.keep,
    )
