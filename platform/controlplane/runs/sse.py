"""A run's history as server-sent events: `id` is the event's seq, the data is the event.

Rows are what is streamed; the doorbell only says when to look. So a lost ring delays an event and never loses one, and a reader
that comes back with the id of the last event it saw misses nothing and sees nothing twice. Refuses to hold a transaction open
between looks. After the last event of a run that has ended comes `event: end`. A stream whose key or session ends closes
without one: its reader is told why when it comes back.
"""

from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.db import close_old_connections
from django.http import HttpRequest, HttpResponseBase, HttpResponseNotAllowed, StreamingHttpResponse

from controlplane.core import doorbell
from controlplane.core.errors import Forbidden, Invalid, NotFound, Unauthorized
from controlplane.core.tenancy import acting_for
from controlplane.core.throttling import address_of, take_request
from controlplane.runs import queries
from controlplane.runs.access import access_run
from controlplane.runs.history import channel
from controlplane.runs.models import RunEvent
from controlplane.runs.schemas import render_event
from controlplane.runs.states import is_terminal
from controlplane.teams.actors import Actor
from controlplane.teams.authentication import actor_now
from trainer.contracts.events import RunState

P = ParamSpec("P")
T = TypeVar("T")
PAGE_EVENTS = 500
POLL_S = 5.0
"""Also the interval of the heartbeat comments, which keep proxies from closing a quiet stream."""
RETRY_MS = 3_000
_readers = ThreadPoolExecutor(max_workers=4, thread_name_prefix="run-events")
"""Every look of every stream happens on these threads, so that a thousand open streams hold four database connections."""
SEQ_MAX = 2**63 - 1


async def stream_run_events(request: HttpRequest, run_id: str) -> HttpResponseBase:
    """`GET /rft/runs/{id}/events`, resumed by the header `Last-Event-ID` or by `?after=`."""
    if request.method != "GET":
        return HttpResponseNotAllowed(["GET"])
    reader = partial(_reader, request)
    actor = await _read(reader)
    await _read(take_request, actor, address_of(request.META))
    after = resume_point(request)
    await _read(_look, reader, run_id, after)
    response = StreamingHttpResponse(event_stream(reader, run_id, after), content_type="text/event-stream")
    response["Cache-Control"] = "no-cache"
    response["X-Accel-Buffering"] = "no"
    return response


def _reader(request: HttpRequest) -> Actor:
    """Who reads, at this moment."""
    actor = actor_now(request)
    actor.require_scope("runs:read")
    return actor


def resume_point(request: HttpRequest) -> int:
    """The seq that the reader has seen. The header wins: a browser that reconnects repeats the address it began with."""
    given = request.headers.get("Last-Event-ID") or request.GET.get("after") or "0"
    if not given.isdecimal() or int(given) > SEQ_MAX:
        raise Invalid(("query", "after"), "must be the id of an event")
    return int(given)


async def _read(function: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Call something that reads the database, on a thread whose connection is fit for use."""

    def call() -> T:
        close_old_connections()
        return function(*arguments, **named)

    return await sync_to_async(call, thread_sensitive=False, executor=_readers)()


@dataclass(frozen=True)
class Look:
    """What one look at the rows found. `has_ended` holds only when nothing is left behind these events."""

    events: list[RunEvent]
    has_ended: bool


def _look(reader: Callable[[], Actor], run_id: str, after: int) -> Look:
    actor = reader()
    with acting_for(actor.team_id):
        # The run first: an event committed between the two reads is then streamed, never skipped by an early end.
        run = access_run(actor, run_id)
        events = queries.events_after(run_id, after, limit=PAGE_EVENTS)
    seen = events[-1].seq if events else after
    return Look(events, is_terminal(RunState(run.state)) and seen >= run.events_count)


async def event_stream(reader: Callable[[], Actor], run_id: str, after: int) -> AsyncIterator[str]:
    yield f"retry: {RETRY_MS}\n\n"
    async with aclosing(_times_to_look(run_id)) as times:
        async for _ in times:
            try:
                async for look in _looks(reader, run_id, after):
                    for event in look.events:
                        yield sse_message(event)
                        after = event.seq
                    if look.has_ended:
                        yield "event: end\ndata: {}\n\n"
                        return
            except (Unauthorized, Forbidden, NotFound):
                return  # the answer has begun: the reader gets the error when it comes back
            yield ": alive\n\n"


async def _looks(reader: Callable[[], Actor], run_id: str, after: int) -> AsyncIterator[Look]:
    """One after the other until one finds less than a page."""
    is_full = True
    while is_full:
        look = await _read(_look, reader, run_id, after)
        yield look
        is_full = len(look.events) == PAGE_EVENTS
        after = look.events[-1].seq if look.events else after


async def _times_to_look(run_id: str) -> AsyncIterator[None]:
    """At once, so that a broker that is away delays no history; then after each ring, and every `POLL_S` without one."""
    yield None
    async with aclosing(doorbell.listen(channel(run_id), every_s=POLL_S)) as rings:
        async for _ in rings:
            yield None


def sse_message(event: RunEvent) -> str:
    return f"id: {event.seq}\ndata: {render_event(event).model_dump_json()}\n\n"
