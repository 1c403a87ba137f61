"""Sends what webhooks are to be told: spreads events over a team's addresses, and makes the attempts that are due.

One sender at a time, so that addresses which hang hold one place of the worker and no more.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from django.db import connection

from controlplane.webhooks import delivering, publishing
from controlplane.webhooks.gateways import send_all
from workers.app import app

CLAIM_MAX = 50
ROUNDS_MAX = 8
"""Of at most a deadline each, well within a task's limit. The next ring goes on."""


@app.task(name=publishing.SPREAD_TASK)
def spread(team_id: str, event_id: str, event_type: str, body: str) -> int:
    return publishing.spread(team_id=team_id, event_id=event_id, event_type=event_type, body=body)


@app.task(name=publishing.DELIVER_TASK)
def deliver() -> int:
    """Make the attempts that are due; returns how many."""
    made = 0
    with _alone() as is_ours:
        for _ in range(ROUNDS_MAX if is_ours else 0):
            orders = delivering.claim(CLAIM_MAX)
            if not orders:
                break
            outcomes = asyncio.run(send_all(orders, may_be_private=settings.PRIVATE_WEBHOOKS))
            for order, outcome in zip(orders, outcomes, strict=True):
                delivering.settle(order, outcome)
            made += len(orders)
    return made


@contextmanager
def _alone() -> Iterator[bool]:
    """Whether no other process is sending. The lock is the connection's: it ends with a process that dies."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", [publishing.DELIVER_TASK])
        (is_ours,) = cursor.fetchone()
    try:
        yield is_ours
    finally:
        if is_ours:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", [publishing.DELIVER_TASK])
