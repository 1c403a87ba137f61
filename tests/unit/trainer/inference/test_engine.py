"""The engine's thread: news arrives, limits hold, ends are booked, and a failing step ends everything loudly."""

import asyncio
import threading
import time

import pytest

from tests.factories.engines import make_core, make_sequence, small_limits
from trainer.inference.engine import Engine
from trainer.inference.errors import EngineStopped, Saturated
from trainer.inference.metrics import EngineMetrics
from trainer.inference.sequence import FinishReason


class Harness:
    """A running engine; `gate` holds its steps back until it is set."""

    def __init__(self, model, **limits):
        self.metrics = EngineMetrics()
        self.gate = threading.Event()
        self.gate.set()
        self.fatal = asyncio.Event()
        core = make_core(model, **limits)
        step = core.step

        def gated_step():
            self.gate.wait()
            return step()

        core.step = gated_step
        self.core = core
        self.engine = Engine(core, small_limits(**limits), self.metrics, on_fatal=self.fatal.set)

    def value(self, line):
        text = self.metrics.text().decode()
        return next(float(row.split()[-1]) for row in text.splitlines() if row.startswith(f"rootstock_engine_{line} "))


@pytest.fixture
async def start(model):
    harnesses = []

    async def make(**limits):
        harnesses.append(Harness(model, **limits))
        await harnesses[-1].engine.start()
        return harnesses[-1]

    yield make
    for harness in harnesses:
        harness.gate.set()
        await harness.engine.stop()


async def test_an_answer_arrives_and_is_booked(start):
    harness = await start()
    sequence = await harness.engine.submit(make_sequence([1, 2, 3], max_new=5)).finished()
    assert (len(sequence.token_ids), sequence.finish_reason) == (5, FinishReason.LENGTH)
    assert harness.value("prompt_tokens_total") == 3
    assert harness.value("completion_tokens_total") == 5
    assert harness.value('requests_finished_total{reason="length"}') == 1
    assert harness.engine.generated_at_s is not None


async def test_a_streaming_sequence_reports_each_token(start):
    harness = await start()
    ticket = harness.engine.submit(make_sequence(max_new=6, streams=True))
    seen = []
    while not ticket.sequence.is_finished:
        await ticket.progress()
        seen.append(len(ticket.sequence.token_ids))
    assert seen == sorted(seen)
    assert seen[-1] == 6
    assert len(seen) >= 2


async def test_an_abort_frees_its_place_and_is_booked_with_its_tokens(start):
    harness = await start()
    ticket = harness.engine.submit(make_sequence([4] * 4, max_new=200, streams=True))
    await ticket.progress()
    harness.engine.abort(ticket.sequence)
    sequence = await ticket.finished()
    assert sequence.finish_reason is FinishReason.ABORT
    assert harness.engine.in_flight_count == 0
    assert harness.value("completion_tokens_total") == len(sequence.token_ids) > 0
    harness.engine.abort(sequence)  # late, and without effect


async def test_the_queue_is_bounded_but_not_for_the_probe(start):
    harness = await start(sequences_max=2, waiting_max=1)
    harness.gate.clear()
    tickets = [harness.engine.submit(make_sequence()) for _ in range(3)]
    with pytest.raises(Saturated):
        harness.engine.submit(make_sequence())
    tickets.append(harness.engine.submit(make_sequence(urgent=True, max_new=1)))
    harness.gate.set()
    for ticket in tickets:
        assert (await ticket.finished()).finish_reason is FinishReason.LENGTH
    assert (await harness.engine.submit(make_sequence()).finished()).token_ids


async def test_a_deadline_ends_waiting_and_running_requests(start):
    harness = await start(sequences_max=1)
    expired = [harness.engine.submit(make_sequence(max_new=200, deadline_at_s=time.monotonic() - 1)) for _ in range(2)]
    for ticket in expired:
        assert (await ticket.finished()).finish_reason is FinishReason.DEADLINE
    assert (await harness.engine.submit(make_sequence()).finished()).finish_reason is FinishReason.LENGTH


async def test_stopping_ends_who_is_left_and_refuses_newcomers(start):
    harness = await start(sequences_max=1)
    harness.gate.clear()
    tickets = [harness.engine.submit(make_sequence(max_new=200)) for _ in range(2)]
    stopping = asyncio.create_task(harness.engine.stop())
    await asyncio.sleep(0)
    harness.gate.set()
    await stopping
    assert {ticket.sequence.finish_reason for ticket in tickets} == {FinishReason.ENGINE}
    with pytest.raises(EngineStopped):
        harness.engine.submit(make_sequence())


async def test_a_failing_step_ends_every_request_and_says_so(start):
    harness = await start()
    harness.gate.clear()
    ticket = harness.engine.submit(make_sequence())

    def broken_step():
        raise RuntimeError("out of memory")

    harness.core.step = broken_step
    harness.gate.set()
    assert (await ticket.finished()).finish_reason in (FinishReason.ENGINE, FinishReason.LENGTH)
    if not harness.fatal.is_set():  # the step in progress was still the good one
        last = harness.engine.submit(make_sequence())
        assert (await last.finished()).finish_reason is FinishReason.ENGINE
    await harness.fatal.wait()
    with pytest.raises(EngineStopped):
        harness.engine.submit(make_sequence())


async def test_a_sparse_batch_waits_for_company_and_a_full_one_does_not(start):
    interval_s = 0.2
    harness = await start(sequences_max=4, step_interval_s=interval_s)
    started_s = time.monotonic()
    await harness.engine.submit(make_sequence(max_new=2)).finished()
    assert time.monotonic() - started_s >= interval_s
    crowd = [harness.engine.submit(make_sequence([1] * 8, max_new=100)) for _ in range(4)]
    started_s = time.monotonic()
    for ticket in crowd:
        await ticket.finished()
    assert time.monotonic() - started_s < 99 * interval_s
