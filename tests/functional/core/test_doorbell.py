"""A ring wakes the listener of its channel; without a broker listeners poll."""

import asyncio

from asgiref.sync import sync_to_async

from controlplane.core import doorbell

LONG_S = 30.0


async def test_a_ring_wakes_the_listener_of_its_channel(broker):
    listener = doorbell.listen("run:1", every_s=LONG_S)
    assert await anext(listener) is True  # Subscribed: whatever came before is read now.
    waiting = asyncio.ensure_future(anext(listener))
    await sync_to_async(doorbell.ring)("run:2")
    await sync_to_async(doorbell.ring)("run:1")
    assert await asyncio.wait_for(waiting, timeout=10) is True
    await listener.aclose()


async def test_silence_wakes_it_too(broker):
    listener = doorbell.listen("run:1", every_s=0.01)
    assert await anext(listener) is True
    assert await anext(listener) is False
    await listener.aclose()


async def test_without_a_broker_listeners_poll_and_ringing_is_no_error():
    await sync_to_async(doorbell.ring)("run:1")
    listener = doorbell.listen("run:1", every_s=0.01)
    assert await asyncio.wait_for(anext(listener), timeout=10) is False
    await listener.aclose()
