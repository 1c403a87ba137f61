"""One request from its arrival to its record, whatever happens to its caller.

The work runs in a task of its own, so that a caller who hangs up, or a view that is cancelled, ends the answer and never the
accounting: each exchange that reached an engine is recorded exactly once. Knows one request; refuses to know HTTP responses.
"""

import asyncio
import json
import logging
import time
from collections.abc import Coroutine
from contextlib import ExitStack
from typing import Any, TypeVar

from django.db import OperationalError

from controlplane.core.errors import ApiError
from controlplane.inference import admission, gateways
from controlplane.inference.access import Route
from controlplane.inference.errors import EngineAway, WrongWeights
from controlplane.inference.models import RequestStatus
from controlplane.inference.offload import in_database
from controlplane.inference.rewriting import public_reply
from controlplane.inference.schemas import ChatRequest
from controlplane.inference.services import Outcome, record_request
from controlplane.inference.tally import Tally
from trainer.contracts.base import new_id

RECORD_TRIES = 4
RECORD_PAUSE_S = 0.25

logger = logging.getLogger(__name__)
T = TypeVar("T")
_running: set["asyncio.Task[Any]"] = set()


def spawn(work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
    """A task that nobody's departure collects: asyncio itself only holds a weak reference."""
    task = asyncio.ensure_future(work)
    _running.add(task)
    task.add_done_callback(_running.discard)
    return task


class Exchange:
    """Holds one of the team's places from its creation to `close`. Raises TooManyAtOnce where there is none."""

    def __init__(self, route: Route, asked: ChatRequest) -> None:
        self.route = route
        self.asked = asked
        self.request_id = new_id()
        self.tally = Tally()
        self._place = ExitStack()
        self._place.enter_context(admission.slot(route.team_id))
        self._started_s = time.perf_counter()
        self._ttft_s: float | None = None
        self._status = RequestStatus.FAILED
        self._error_code = "internal"

    @property
    def engine_body(self) -> dict[str, Any]:
        return self.asked.engine_body(engine_name=self.route.engine_name, cache_salt=self.route.cache_salt)

    def take(self, chunk: dict[str, Any]) -> None:
        """Count what came, and refuse it when it is not by the weights that were asked for."""
        self.tally.feed(chunk)
        if self._ttft_s is None and self.tally.output_tokens_count:
            self._ttft_s = time.perf_counter() - self._started_s
        if self.route.digest and self.tally.digest != self.route.digest:
            raise WrongWeights

    def end(self, status: RequestStatus, error_code: str = "") -> None:
        self._status, self._error_code = status, error_code

    async def close(self) -> None:
        """Record and give the place back. Goes on when the caller of this is cancelled."""
        await asyncio.shield(spawn(self._close()))

    async def _close(self) -> None:
        try:
            await _persist(self.route, self._outcome(), self.tally)
        finally:
            self._place.close()

    def _outcome(self) -> Outcome:
        return Outcome(
            request_id=self.request_id,
            is_stream=self.asked.stream,
            status=self._status,
            error_code=self._error_code,
            duration_s=time.perf_counter() - self._started_s,
            ttft_s=self._ttft_s if self.asked.stream else None,
        )


async def complete(exchange: Exchange) -> dict[str, Any]:
    """A whole answer. Once begun it is finished and billed, even when its caller has gone: nothing of it was ever partial."""
    try:
        async with gateways.chat(exchange.route, exchange.engine_body) as response:
            reply = _reply(await response.aread())
        exchange.take(reply)
        exchange.end(RequestStatus.OK)
        return public_reply(reply, request_id=exchange.request_id, public_name=exchange.route.public_name)
    except ApiError as error:
        exchange.end(RequestStatus.FAILED, error.code)
        raise
    finally:
        await exchange.close()


def _reply(content: bytes) -> dict[str, Any]:
    try:
        reply = json.loads(content)
    except ValueError as error:
        raise EngineAway from error
    if not isinstance(reply, dict):
        raise EngineAway
    return reply


async def _persist(route: Route, outcome: Outcome, tally: Tally) -> None:
    """Tries again while the database is away for a moment; what cannot be recorded is logged whole, to be replayed by hand."""
    for attempt in range(1, RECORD_TRIES + 1):
        try:
            await in_database(record_request, route, outcome, tally)
            return
        except OperationalError:
            if attempt == RECORD_TRIES:
                logger.exception("request not recorded: %s %s %s", route, outcome, tally)
                return
            await asyncio.sleep(RECORD_PAUSE_S * attempt)
