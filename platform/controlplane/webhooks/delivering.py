"""What is due to be sent, and what became of it: a claim, a request outside every transaction, a write that the claim guards.

Knows the schedule of attempts and when a webhook is given up. Refuses to know HTTP (`gateways`).
"""

from dataclasses import dataclass, field
from datetime import timedelta

from django.db import transaction

from controlplane.audit.services import record_by_system
from controlplane.core.clock import DatabaseNow, now
from controlplane.core.sealing import SealBroken, unseal_text
from controlplane.webhooks import access
from controlplane.webhooks.models import RESPONSE_LENGTH_MAX, Delivery, DeliveryState, Webhook
from controlplane.webhooks.signing import headers

CLAIM_S = 60
"""Twelve times the deadline of an attempt: who is not back by then has died, and another sends it again."""
PER_TEAM_MAX = 8
"""Of one claim, so that a team whose addresses hang keeps nobody waiting for more than one attempt."""
PAUSE_S_FIRST, PAUSE_S_MAX, PAUSE_FACTOR = 10, 6 * 3600, 4
ATTEMPTS_MAX = 9
"""Over sixteen hours."""
GIVEN_UP_AFTER = timedelta(days=5)
"""Of nothing but failures, until a webhook is disabled."""
GONE = 410
"""A receiver that answers this wants no more: it is disabled at once."""

_CLAIM = """
    UPDATE webhooks_delivery SET due_at = rootstock_now() + make_interval(secs => %s), attempts_count = attempts_count + 1,
        attempted_at = rootstock_now()
    WHERE id IN (
        SELECT id FROM webhooks_delivery WHERE state = 'PENDING' AND due_at <= rootstock_now() AND id IN (
            SELECT id FROM (
                SELECT delivery.id, delivery.due_at,
                    row_number() OVER (PARTITION BY delivery.team_id ORDER BY delivery.due_at, delivery.id) AS place
                FROM webhooks_delivery delivery JOIN webhooks_webhook webhook ON webhook.id = delivery.webhook_id
                WHERE delivery.state = 'PENDING' AND delivery.due_at <= rootstock_now() AND webhook.is_enabled
            ) due WHERE place <= %s ORDER BY due_at LIMIT %s)
        FOR UPDATE SKIP LOCKED)
    RETURNING *
"""


@dataclass(frozen=True)
class Order:
    """One attempt: what is sent where. `attempt` fences its outcome."""

    delivery_id: str
    attempt: int
    url: str
    body: str
    headers: dict[str, str] = field(repr=False)


@dataclass(frozen=True)
class Outcome:
    """`status` is None where there was no answer; `error` then says why."""

    status: int | None
    text: str = ""
    error: str = ""
    duration_ms: int = 0

    @property
    def is_success(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def claim(limit: int) -> list[Order]:
    """Up to `limit` attempts that are due, signed for this moment. Safe with any number of claimers."""
    rows = list(Delivery.objects.raw(_CLAIM, [CLAIM_S, PER_TEAM_MAX, limit]))
    webhooks = Webhook.objects.in_bulk({row.webhook_id for row in rows})
    orders = (_order(row, webhooks[row.webhook_id]) for row in rows if row.webhook_id in webhooks)
    return [order for order in orders if order is not None]


def _order(row: Delivery, webhook: Webhook) -> Order | None:
    """None where the secret cannot be opened: nothing is sent unsigned, and the webhook waits for a new secret."""
    moment = now()
    sealed = [webhook.sealed_secret]
    if webhook.previous_ends_at is not None and webhook.previous_ends_at > moment:
        sealed.append(webhook.sealed_previous_secret)
    try:
        opened = [unseal_text(one) for one in sealed]
    except SealBroken:
        disable(webhook, "its secret can no longer be read; rotate it")
        return None
    return Order(row.id, row.attempts_count, webhook.url, row.body, headers(row.event_id, row.body, moment, opened))


@transaction.atomic
def settle(order: Order, outcome: Outcome) -> bool:
    """Write down what became of an attempt, and when the next one is. False where another claimer was there meanwhile."""
    delivery = access.claimed_delivery(order.delivery_id, order.attempt)
    if delivery is None:
        return False
    delivery.response_status, delivery.duration_ms = outcome.status, outcome.duration_ms
    delivery.response_text, delivery.error = outcome.text[:RESPONSE_LENGTH_MAX], outcome.error[:RESPONSE_LENGTH_MAX]
    if outcome.is_success:
        delivery.state = DeliveryState.DELIVERED
        Webhook.objects.filter(id=delivery.webhook_id, first_failed_at__isnull=False).update(first_failed_at=None)
    else:
        _postpone(delivery)
        _note_failure(delivery, outcome)
    delivery.save()
    return True


def pause_s(attempt: int) -> int:
    """From the failure of attempt 1, 2, … to the next one."""
    return int(min(PAUSE_S_MAX, PAUSE_S_FIRST * PAUSE_FACTOR ** (attempt - 1)))


def _postpone(delivery: Delivery) -> None:
    if delivery.attempts_count >= ATTEMPTS_MAX:
        delivery.state = DeliveryState.FAILED
    else:
        delivery.due_at = now() + timedelta(seconds=pause_s(delivery.attempts_count))


def _note_failure(delivery: Delivery, outcome: Outcome) -> None:
    moment = now()
    webhook = access.webhook_of_delivery(delivery)
    webhook.first_failed_at = webhook.first_failed_at or moment
    webhook.save(update_fields=["first_failed_at"])
    if outcome.status == GONE:
        disable(webhook, "its address answered 410 Gone")
    elif webhook.first_failed_at <= moment - GIVEN_UP_AFTER:
        disable(webhook, f"every attempt of {GIVEN_UP_AFTER.days} days failed")


@transaction.atomic
def disable(webhook: Webhook, reason: str) -> None:
    """Send nothing more until its team enables it again. What is pending waits."""
    if Webhook.objects.filter(id=webhook.id, is_enabled=True).update(
        is_enabled=False, disabled_reason=reason, updated_at=DatabaseNow()
    ):
        detail = {"url": webhook.url, "reason": reason}
        record_by_system(webhook.team_id, "webhook.disabled", kind="webhook", object_id=webhook.id, detail=detail)
