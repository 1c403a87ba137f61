"""Consequences that must survive a crash: written in the transaction that causes them, carried out by a worker later.

`emit` inside a transaction; on commit the broker's bell rings and the worker drains. A lost ring loses nothing: beat drains too.
A message is claimed for `LEASE_S`; whoever claimed it ends with `mark_done` or `mark_failed`. A claimer that dies is followed by
another, so handlers are idempotent. Refuses to know what a task does.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db import connection, transaction

from controlplane.core import broker
from controlplane.core.clock import DatabaseNow
from controlplane.core.models import OutboxMessage

DRAIN_TASK = "outbox.drain"
LEASE_S = 120
ATTEMPTS_MAX = 12
BACKOFF_S_MAX = 600
ERROR_LENGTH_MAX = 2000

_CLAIM = """
    UPDATE core_outboxmessage SET due_at = rootstock_now() + make_interval(secs => %s), attempts_count = attempts_count + 1
    WHERE id IN (
        SELECT id FROM core_outboxmessage
        WHERE done_at IS NULL AND failed_at IS NULL AND due_at <= rootstock_now()
        ORDER BY due_at, id LIMIT %s FOR UPDATE SKIP LOCKED)
    RETURNING *
"""


def emit(*, task: str, key: str, payload: Mapping[str, Any], delay_s: float = 0) -> None:
    """Ask for `task(**payload)` after this transaction commits, once per `key`. Must run inside a transaction."""
    if not connection.in_atomic_block:
        raise RuntimeError(f"outbox.emit({key!r}) outside a transaction would not be bound to the change it follows from")
    message = OutboxMessage(task=task, key=key, payload=dict(payload))
    if delay_s:
        message.due_at = DatabaseNow() + timedelta(seconds=delay_s)
    OutboxMessage.objects.bulk_create([message], ignore_conflicts=True)
    transaction.on_commit(ring)


def ring() -> None:
    """Tell the worker that the outbox holds something. Losing it costs time, never work."""
    broker.send(DRAIN_TASK)


def claim(limit: int = 50) -> list[OutboxMessage]:
    """Take up to `limit` due messages for `LEASE_S` seconds. Safe with any number of drainers."""
    return list(OutboxMessage.objects.raw(_CLAIM, [LEASE_S, limit]))


def mark_done(message: OutboxMessage) -> None:
    _settle(message, done_at=DatabaseNow())


def mark_failed(message: OutboxMessage, error: str) -> None:
    """Try again after an exponential pause; give up, visibly, after `ATTEMPTS_MAX`."""
    if message.attempts_count >= ATTEMPTS_MAX:
        _settle(message, failed_at=DatabaseNow(), last_error=error[:ERROR_LENGTH_MAX])
        return
    pause_s = min(BACKOFF_S_MAX, 2**message.attempts_count)
    _settle(message, due_at=DatabaseNow() + timedelta(seconds=pause_s), last_error=error[:ERROR_LENGTH_MAX])


def _settle(message: OutboxMessage, **values: Any) -> None:
    """Only the newest claimer settles: `attempts_count` fences an earlier one that came back."""
    OutboxMessage.objects.filter(id=message.id, attempts_count=message.attempts_count).update(**values)
