"""The engine's own thread and its door to asyncio. Knows hand-over, deadlines and stopping; refuses to know HTTP and text.

Requests go in through an inbox; news comes out in one call per step on the event loop. When a step raises, every request ends
with an error and `on_fatal` is called: the process is then restarted from outside, since nothing in here can be trusted.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable

from trainer.inference.backend import Ticket
from trainer.inference.core import EngineCore
from trainer.inference.errors import EngineStopped, Saturated
from trainer.inference.limits import EngineLimits
from trainer.inference.metrics import EngineMetrics
from trainer.inference.sequence import FinishReason, Sequence, SequenceState

_logger = logging.getLogger(__name__)


class Engine:
    """Drives one `EngineCore`. All public methods are for the event loop that `start` was called on."""

    def __init__(self, core: EngineCore, limits: EngineLimits, metrics: EngineMetrics, *, on_fatal: Callable[[], None]):
        self._core = core
        self._limits = limits
        self._metrics = metrics
        self._on_fatal = on_fatal
        self._inbox: list[tuple[Sequence, FinishReason | None]] = []
        """(sequence, None) submits it; (sequence, reason) ends it."""
        self._bell = threading.Condition()
        self._stopping = False
        self._step_started_s = 0.0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._tickets: dict[Sequence, Ticket] = {}
        self._thread = threading.Thread(target=self._run, name="engine", daemon=True)
        self.generated_at_s: float | None = None
        """When a token was last sampled, on the monotonic clock."""
        metrics.kv_blocks_total.set(core.cache.blocks_total)

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    async def stop(self) -> None:
        """End the thread; whoever still runs is ended with reason `engine`."""
        with self._bell:
            self._stopping = True
            self._bell.notify()
        await asyncio.to_thread(self._thread.join)
        self._settle(list(self._tickets))

    @property
    def in_flight_count(self) -> int:
        """Sequences in the running batch."""
        return len(self._core.scheduler.running)

    def submit(self, sequence: Sequence) -> Ticket:
        """Queue a sequence. Raises Saturated when the queue is full, EngineStopped when nothing runs any more."""
        if self._stopping:
            raise EngineStopped("the engine is stopping")
        if len(self._tickets) >= self._limits.sequences_max + self._limits.waiting_max and not sequence.urgent:
            raise Saturated(f"{self._limits.waiting_max} requests are waiting; try again later")
        ticket = self._tickets[sequence] = Ticket(sequence)
        self._post(sequence, None)
        return ticket

    def abort(self, sequence: Sequence) -> None:
        """End a sequence whose client went away. A finished one is left as it is."""
        if not sequence.is_finished:
            self._post(sequence, FinishReason.ABORT)

    def _post(self, sequence: Sequence, reason: FinishReason | None) -> None:
        with self._bell:
            self._inbox.append((sequence, reason))
            self._bell.notify()

    def _run(self) -> None:
        try:
            while self._take_inbox():
                self._expire()
                self._step()
                self._gather()
        except Exception:
            _logger.exception("the engine's step failed; every request ends and the process must restart")
            self._stopping = True
            self._call_loop(self._on_fatal)
        finally:
            self._end_everyone()

    def _take_inbox(self) -> bool:
        """Apply what came in; sleep while there is nothing to do. False when the engine stops."""
        with self._bell:
            while not (self._inbox or self._stopping or self._core.scheduler.has_work):
                self._bell.wait()
            inbox, self._inbox = self._inbox, []
        ended = []
        for sequence, reason in inbox:
            if reason is None:
                self._core.scheduler.add(sequence)
            elif not sequence.is_finished:
                self._core.finish(sequence, reason)
                ended.append(sequence)
        self._publish(ended)
        return not self._stopping

    def _expire(self) -> None:
        expired = self._core.scheduler.expired(time.monotonic())
        for sequence in expired:
            self._core.finish(sequence, FinishReason.DEADLINE)
        self._publish(expired)

    def _step(self) -> None:
        started_s = self._step_started_s = time.monotonic()
        progressed = self._core.step()
        scheduler = self._core.scheduler
        self._metrics.running.set(len(scheduler.running))
        self._metrics.waiting.set(len(scheduler.waiting))
        self._metrics.kv_blocks_used.set(self._core.cache.blocks_total - self._core.cache.free_count)
        if progressed or scheduler.running:
            # A step that only advanced a long prompt shows as well that the engine works.
            self.generated_at_s = time.monotonic()
        if progressed:
            self._metrics.step_s.observe(time.monotonic() - started_s)
            self._metrics.step_rows.observe(len(progressed))
            self._publish([sequence for sequence in progressed if sequence.streams or sequence.is_finished])

    def _gather(self) -> None:
        """Let requests come together before the next step, unless the batch is well filled."""
        scheduler, now_s = self._core.scheduler, time.monotonic()
        if scheduler.depth * 2 < self._limits.sequences_max:
            time.sleep(max(0.0, self._step_started_s + self._limits.step_interval_s - now_s))

    def _end_everyone(self) -> None:
        with self._bell:
            inbox, self._inbox = self._inbox, []
        sequences = [sequence for sequence, _ in inbox] + self._core.scheduler.running + list(self._core.scheduler.waiting)
        for sequence in sequences:
            if not sequence.is_finished:
                sequence.finish_reason = FinishReason.ENGINE
                sequence.state = SequenceState.FINISHED
        self._publish(sequences)

    def _publish(self, sequences: list[Sequence]) -> None:
        if sequences:
            self._call_loop(lambda: self._settle(sequences))

    def _call_loop(self, callback: Callable[[], None]) -> None:
        assert self._loop is not None
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(callback)

    def _settle(self, sequences: list[Sequence]) -> None:
        """On the event loop: wake the readers, and book what has ended."""
        for sequence in sequences:
            ticket = self._tickets.get(sequence)
            if ticket is None:
                continue
            if sequence.is_finished:
                del self._tickets[sequence]
                self._metrics.book(sequence, time.monotonic())
            ticket.tell()
