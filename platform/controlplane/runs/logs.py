"""The log of a run as text: JSON lines made from its events, filtered as the public client asks, followed by cursor.

Knows how an event reads as a line. Refuses to know who may read it.
"""

import json
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any

from django.db import DataError, OperationalError, connection, transaction
from django.db.models import QuerySet
from pydantic import Field

from controlplane.core.clock import now
from controlplane.core.errors import Invalid
from controlplane.core.schemas import Query
from controlplane.runs.models import Run, RunEvent
from trainer.contracts.events import Component, EventKind

LINES_MAX = 10_000
SCANNED_MAX = 50_000
PATTERN_LENGTH_MAX = 200
REGEX_TIMEOUT_MS = 2000
MATCH_LINES = "SELECT position - 1 FROM unnest(%s::text[]) WITH ORDINALITY AS given(line, position) WHERE line ~* %s"
LOGGED_KINDS = [
    EventKind.LOG,
    EventKind.STATE,
    EventKind.STEP,
    EventKind.EVAL,
    EventKind.CHECKPOINT,
    EventKind.INCIDENT,
    EventKind.WARNING,
]
PUBLIC_COMPONENTS = {
    "env-server": {Component.ENVIRONMENT, Component.SANDBOX},
    "inference": {Component.ENGINE},
    "control-plane": {
        Component.API,
        Component.QUEUE,
        Component.WEB,
        Component.INTERNAL,
        Component.WORKER,
        Component.BEAT,
        Component.DATABASE,
    },
}
"""What the public client calls components, where we call them otherwise; and all that is not a run's own process, as one."""
OVER = "_over"
"""Ends the code of an incident that says that another one is over."""
LEVELS = {EventKind.INCIDENT: "ERROR", EventKind.WARNING: "WARNING"}


class LogQuery(Query):
    """`cursor` (a seq; 0 for the beginning) turns the tail into a stream without gap or repeat: ask again with the answer's."""

    tail_lines: Annotated[int, Field(ge=1, le=LINES_MAX)] = 1000
    search: Annotated[str, Field(max_length=PATTERN_LENGTH_MAX)] = ""
    regex: bool = False
    level: str = ""
    since_seconds: Annotated[int, Field(ge=1, le=86_400)] | None = None
    component: str = ""
    env_name: str = ""
    cursor: Annotated[int, Field(ge=0)] | None = None


@dataclass(frozen=True)
class LogPage:
    """`cursor` is the seq up to which everything has been looked at."""

    lines: list[str]
    cursor: int


def read_log(run: Run, query: LogQuery) -> LogPage:
    events = _events(run, query)
    if query.cursor is not None:
        scanned = list(events.filter(seq__gt=query.cursor).order_by("seq")[: query.tail_lines])
        # A page that is not full has seen everything that was committed, whatever its kind.
        cursor = scanned[-1].seq if len(scanned) == query.tail_lines else max(run.events_count, query.cursor)
        return LogPage(_lines(scanned, query), cursor)
    scanned = list(reversed(events.order_by("-seq")[:SCANNED_MAX]))
    return LogPage(_lines(scanned, query)[-query.tail_lines :], run.events_count)


def has_log(run: Run) -> bool:
    """Whether a holder has said anything yet."""
    return RunEvent.objects.filter(run=run, kind=EventKind.LOG).exists()


def _events(run: Run, query: LogQuery) -> QuerySet[RunEvent]:
    # Events beyond the count that this run's row showed are left for the next page: the cursor must not skip them.
    events = RunEvent.objects.filter(run=run, kind__in=LOGGED_KINDS, seq__lte=run.events_count)
    if query.since_seconds is not None:
        events = events.filter(at__gte=now() - timedelta(seconds=query.since_seconds))
    return events


def _lines(events: list[RunEvent], query: LogQuery) -> list[str]:
    records = [record for event in events if _selected(record := as_record(event), query)]
    if query.search and query.regex:
        chosen = _matching([record["message"] for record in records], query.search)
        records = [record for index, record in enumerate(records) if index in chosen]
    elif query.search:
        records = [record for record in records if query.search.lower() in record["message"].lower()]
    return [json.dumps(record, ensure_ascii=False) for record in records]


def _selected(record: dict[str, Any], query: LogQuery) -> bool:
    if query.level and record["level"] != query.level.upper():
        return False
    if query.component and record["component"] not in PUBLIC_COMPONENTS.get(query.component, {query.component}):
        return False
    said_by = record.get("env_name", "")
    return not query.env_name or query.env_name in {said_by, bare_name(said_by)}


def bare_name(environment: str) -> str:
    """`rules` of `ann/rules@0.1.0`: what the public client calls it, whose `NAME/INDEX` leaves no room for an owner."""
    return environment.rpartition("/")[2].partition("@")[0]


def _matching(lines: list[str], pattern: str) -> set[int]:
    """Positions of the lines that a stranger's regular expression matches. PostgreSQL matches them: its engine does not take
    exponential time on a hostile pattern, and a statement can be timed out."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL statement_timeout = {REGEX_TIMEOUT_MS}")
            cursor.execute(
                "SELECT position - 1 FROM unnest(%s::text[]) WITH ORDINALITY AS given(line, position) WHERE line ~* %s",
                [lines, pattern],
            )
            return {int(row[0]) for row in cursor.fetchall()}
    except (DataError, OperationalError) as error:
        raise Invalid(("query", "search"), f"cannot search by this expression: {error}") from None


def as_record(event: RunEvent) -> dict[str, Any]:
    """`{timestamp, level, message, component, kind, …}`: what the client prints as one line. A holder numbers its reports; an
    event without a number is ours."""
    payload = event.payload
    is_good_news = str(payload.get("code", "")).endswith(OVER)
    level = "INFO" if is_good_news else payload.get("level") or LEVELS.get(EventKind(event.kind), "INFO")
    record = {
        "timestamp": event.at.isoformat(),
        "level": str(level).upper(),
        "message": _message(event),
        "component": payload.get("component") or (Component.ORCHESTRATOR if event.sequence else Component.API),
        "kind": event.kind,
    }
    if "env_name" in payload:
        record["env_name"] = payload["env_name"]
    return record


def _message(event: RunEvent) -> str:
    payload, kind = event.payload, EventKind(event.kind)
    if kind is EventKind.STATE:
        return f"{payload.get('state')}: {payload.get('reason')}" if payload.get("reason") else str(payload.get("state"))
    if kind is EventKind.STEP:
        numbers = payload.get("metrics", {})
        return f"step {event.step} | " + " | ".join(f"{name} {_number(value)}" for name, value in sorted(numbers.items()))
    if kind is EventKind.EVAL:
        return f"evaluated {payload.get('environment')} after step {event.step}: reward {_number(payload.get('reward_mean'))}"
    if kind is EventKind.CHECKPOINT:
        return f"checkpoint of step {event.step} is committed"
    return str(payload.get("message", ""))


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
