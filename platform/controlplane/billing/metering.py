"""Meter events in, charges out. Knows de-duplication and cumulative amounts; refuses to know who reports and why.

Insert and de-duplication are one statement in the caller's transaction: an event counts exactly when its row is new, so a
replay, a crash between two steps and a concurrent twin all leave the same total.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from django.db import connection

from controlplane.billing import price_book
from controlplane.billing.charging import amount_due_microusd
from controlplane.billing.identity import Subject, meter_event_id
from controlplane.billing.models import Charge, Price
from trainer.contracts.base import new_id
from trainer.contracts.events import Meter
from trainer.contracts.internal import UsageIn


class Reported(NamedTuple):
    """Which work a batch of facts belongs to."""

    team_id: str
    subject: Subject
    segment: int
    model: str


class Due(NamedTuple):
    charge: Charge
    amount_microusd: int


def insert_new(reported: Reported, events: Iterable[UsageIn]) -> dict[str, UsageIn]:
    """Insert the events and return those that were new, by id. Two events of one identity count once.

    Rows are inserted in the order of their ids, so that two overlapping batches wait for each other and never deadlock.
    """
    by_id = {_event_id(reported, event): event for event in events}
    rows = sorted(by_id.items())
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO billing_meterevent
                (id, team_id, subject_kind, subject_id, segment, model, meter, sequence, quantity, occurred_at)
            SELECT fact.id, %s, %s, %s, %s, %s, fact.meter, fact.sequence, fact.quantity, fact.occurred_at
            FROM unnest(%s::text[], %s::text[], %s::text[], %s::bigint[], %s::timestamptz[])
                AS fact (id, meter, sequence, quantity, occurred_at)
            ON CONFLICT (id) DO NOTHING
            RETURNING id
            """,
            [reported.team_id, *reported.subject, reported.segment, reported.model, *_columns(rows)],
        )
        return {event_id: by_id[event_id] for (event_id,) in cursor.fetchall()}


def add_to_charges(reported: Reported, events: Iterable[UsageIn]) -> list[Due]:
    """Add the quantities to the subject's charges, and say what each now owes. The charges stay locked."""
    added = _quantity_by_price(reported.model, events)
    totals = _raise_totals(reported, added)
    due = [Due(charge, _amount_due(charge, added_price)) for charge, added_price in _pair(totals, added)]
    for charge, amount in due:
        charge.posted_microusd += amount
    Charge.objects.bulk_update([charge for charge, amount in due if amount], ["posted_microusd"])
    return [entry for entry in due if entry.amount_microusd]


def batch_key(event_ids: Iterable[str]) -> str:
    """Name of the transfer that pays for exactly these events."""
    return "usage:" + hashlib.sha256("".join(sorted(event_ids)).encode()).hexdigest()


def _event_id(reported: Reported, event: UsageIn) -> str:
    return meter_event_id(
        team_id=reported.team_id,
        subject=reported.subject,
        segment=reported.segment,
        meter=event.meter,
        sequence=event.sequence,
    )


def _columns(rows: list[tuple[str, UsageIn]]) -> list[list[object]]:
    return [
        [event_id for event_id, _ in rows],
        [event.meter.value for _, event in rows],
        [event.sequence for _, event in rows],
        [event.quantity for _, event in rows],
        [event.at for _, event in rows],
    ]


def _quantity_by_price(model: str, events: Iterable[UsageIn]) -> dict[Price, int]:
    """Quantities by the price version that was in force when the fact happened, in the order of the prices' keys."""
    batch = list(events)
    versions = price_book.prices_for(model, {event.meter for event in batch})
    quantities: dict[Price, int] = defaultdict(int)
    for event in batch:
        quantities[price_book.price_at(versions, Meter(event.meter), event.at)] += event.quantity
    return dict(sorted(quantities.items(), key=lambda item: item[0].pk))


def _raise_totals(reported: Reported, added: dict[Price, int]) -> list[Charge]:
    """Upsert one charge a price, in the order of the prices' keys, and return the rows as they now are."""
    return list(
        Charge.objects.raw(
            """
            INSERT INTO billing_charge
                (id, team_id, subject_kind, subject_id, price_id, quantity, posted_microusd, last_billed_at)
            SELECT fresh.id, %s, %s, %s, fresh.price_id, fresh.quantity, 0, rootstock_now()
            FROM unnest(%s::text[], %s::bigint[], %s::bigint[]) AS fresh (id, price_id, quantity)
            ON CONFLICT (team_id, subject_kind, subject_id, price_id) DO UPDATE SET
                quantity = billing_charge.quantity + excluded.quantity,
                last_billed_at = greatest(billing_charge.last_billed_at, excluded.last_billed_at)
            RETURNING *
            """,
            [
                reported.team_id,
                *reported.subject,
                [new_id() for _ in added],
                [price.pk for price in added],
                list(added.values()),
            ],
        )
    )


def _pair(charges: list[Charge], added: dict[Price, int]) -> list[tuple[Charge, Price]]:
    prices = {price.pk: price for price in added}
    return [(charge, prices[charge.price_id]) for charge in charges]


def _amount_due(charge: Charge, price: Price) -> int:
    return amount_due_microusd(
        quantity_total=charge.quantity, usd_per_million=price.usd_per_million, posted_microusd=charge.posted_microusd
    )
