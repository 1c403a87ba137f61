"""Wakes readers of live streams: "something new is in the database on this channel". Carries no data.

Publishing and listening go over the broker. Without it a reader still wakes every `every_s`, so that a stream is late and never
silent. Refuses to know events.
"""

import asyncio
import logging
from collections.abc import AsyncIterator
from functools import cache

import redis
import redis.asyncio
from django.conf import settings

logger = logging.getLogger(__name__)
PREFIX = "rootstock:doorbell:"
CONNECT_TIMEOUT_S = 2.0


@cache
def publisher() -> "redis.Redis":
    return redis.Redis.from_url(settings.BROKER_URL, socket_connect_timeout=CONNECT_TIMEOUT_S, socket_timeout=CONNECT_TIMEOUT_S)


def ring(channel: str) -> None:
    """Wake every listener of `channel`. Call it on commit. A broker that is away is logged: listeners also poll."""
    try:
        publisher().publish(PREFIX + channel, b"")
    except redis.RedisError as error:
        logger.warning("the doorbell of %s is out of order: %s", channel, error)


async def listen(*channels: str, every_s: float = 5.0) -> AsyncIterator[bool]:
    """Yields True after a ring on one of the channels and False after `every_s` without one. Never ends by itself."""
    client = redis.asyncio.Redis.from_url(settings.BROKER_URL, socket_connect_timeout=CONNECT_TIMEOUT_S)
    try:
        while True:
            async with client.pubsub() as subscription:
                try:
                    await subscription.subscribe(*(PREFIX + channel for channel in channels))
                    for _ in channels:
                        await subscription.get_message(timeout=CONNECT_TIMEOUT_S)
                    # Whatever was written before the subscription stood would never ring.
                    yield True
                    while True:
                        yield await subscription.get_message(timeout=every_s) is not None
                except redis.RedisError as error:
                    logger.warning("listening to %s failed: %s", channels, error)
            await asyncio.sleep(every_s)
            yield False
    finally:
        await client.aclose()
