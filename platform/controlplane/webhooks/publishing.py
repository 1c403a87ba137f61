"""How an event becomes deliveries: noted in the transaction of the change, spread over the team's webhooks by a worker.

Knows the body that every event has. Refuses to know what runs, evaluations and adapters are: their apps say what is in `data`.
"""

import json
from typing import Any

from django.conf import settings
from django.db import transaction

from controlplane.core import broker, outbox
from controlplane.core.clock import now
from controlplane.core.tenancy import acting_for
from controlplane.webhooks.models import EVENT_ID_PREFIX, Delivery, EventType
from controlplane.webhooks.queries import listening
from trainer.contracts.base import new_id

SPREAD_TASK = "webhooks.spread"
DELIVER_TASK = "webhooks.deliver"


def publish(team_id: str, event: EventType, *, key: str, data: dict[str, Any]) -> None:
    """Tell the team's webhooks, once this transaction commits. `key` names the fact; a second publish of it is none."""
    with acting_for(team_id):
        if not listening(team_id, event).exists():
            return
    message = {"team_id": team_id, "event_id": new_event_id(), "event_type": event, "body": event_body(event, data)}
    outbox.emit(task=SPREAD_TASK, key=f"webhooks:{team_id}:{event}:{key}", payload=message)


def spread(*, team_id: str, event_id: str, event_type: str, body: str) -> int:
    """A delivery for each webhook that wants the event; returns how many there are. Done again it adds nothing."""
    with acting_for(team_id), transaction.atomic():
        rows = [
            Delivery(team_id=team_id, webhook=webhook, event_id=event_id, event_type=event_type, body=body)
            for webhook in listening(team_id, event_type)
        ]
        Delivery.objects.bulk_create(rows, ignore_conflicts=True)
        transaction.on_commit(ring)
    return len(rows)


def ring() -> None:
    """Tell the worker that something is to be sent. Losing it costs time: beat rings too."""
    broker.send(DELIVER_TASK)


def new_event_id() -> str:
    return EVENT_ID_PREFIX + new_id()


def event_body(event_type: str, data: dict[str, Any]) -> str:
    """`{type, timestamp, data}`, as the specification has it."""
    return json.dumps({"type": event_type, "timestamp": now().isoformat(), "data": data})


def page_url(path: str) -> str:
    """Where people look at what an event is about."""
    return f"{settings.PUBLIC_ORIGIN}{path}"
