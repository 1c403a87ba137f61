"""Promise: work that was handed to a database thread is done, whatever becomes of whoever waits for it."""

import asyncio
import threading
from contextvars import ContextVar

import pytest

from controlplane.inference.offload import in_database

WAIT_S = 10.0
flavour: ContextVar[str] = ContextVar("flavour", default="none")


async def test_the_callers_context_travels_along():
    flavour.set("cherry")
    assert await in_database(flavour.get) == "cherry"


async def test_an_error_rises_to_the_caller():
    with pytest.raises(ZeroDivisionError):
        await in_database(lambda: 1 // 0)


async def test_a_cancelled_waiter_does_not_cancel_the_work():
    begun, go, done = threading.Event(), threading.Event(), threading.Event()

    def work() -> None:
        begun.set()
        go.wait(WAIT_S)
        done.set()

    waiter = asyncio.create_task(in_database(work))
    await asyncio.to_thread(begun.wait, WAIT_S)
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    go.set()
    assert await asyncio.to_thread(done.wait, WAIT_S)


async def test_work_that_waits_for_a_thread_is_done_after_its_waiter_was_cancelled():
    go, done = threading.Event(), threading.Event()
    busy = [asyncio.create_task(in_database(go.wait, WAIT_S)) for _ in range(20)]
    waiter = asyncio.create_task(in_database(done.set))
    await asyncio.sleep(0)
    waiter.cancel()
    await asyncio.sleep(0)
    go.set()
    await asyncio.gather(*busy)
    assert await asyncio.to_thread(done.wait, WAIT_S)
