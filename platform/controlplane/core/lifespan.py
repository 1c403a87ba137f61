"""Writes a web process's start and end into `service_lives`, by the server's own lifespan messages.

Knows ASGI's lifespan. Refuses to hold a start up: a database that is away is asked again until it is there.
"""

import asyncio
import contextlib
import logging

from asgiref.sync import sync_to_async
from django.db import DatabaseError, close_old_connections, connection

from controlplane.core.body_limit import Application, Message, Receive, Send
from controlplane.core.models import ServiceLife
from controlplane.core.service_lives import begin_life, end_life
from trainer.contracts.events import Component

RETRY_S = 1.0
logger = logging.getLogger(__name__)


class Lifespan:
    """ASGI middleware around the outermost application."""

    def __init__(self, application: Application, component: Component) -> None:
        self.application = application
        self.component = component
        self.life: ServiceLife | None = None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await self.application(scope, receive, send)
            return
        await receive()
        beginning = asyncio.create_task(self._begin())
        await send({"type": "lifespan.startup.complete"})
        await receive()
        beginning.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await beginning
        await self._end()
        await send({"type": "lifespan.shutdown.complete"})

    async def _begin(self) -> None:
        while self.life is None:
            try:
                self.life = await sync_to_async(_on_fresh_connection)(begin_life, self.component)
            except DatabaseError as error:
                logger.warning("the start of %s is not written down yet: %s", self.component, error)
                await asyncio.sleep(RETRY_S)

    async def _end(self) -> None:
        if self.life is not None:
            try:
                await sync_to_async(_on_fresh_connection)(end_life, self.life)
            except DatabaseError as error:
                logger.warning("the end of %s is not written down: %s", self.component, error)


def _on_fresh_connection(call, argument):  # type: ignore[no-untyped-def]
    close_old_connections()
    try:
        return call(argument)
    finally:
        connection.close()
