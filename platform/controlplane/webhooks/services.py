"""Writes to webhooks. One transaction each, no network; each leaves an audit event that holds no secret.

Knows limits, and that a secret is told once. Refuses to send anything: what is due is a row (`delivering`), and a worker is rung.
"""

from datetime import timedelta

from django.db import transaction

from controlplane.audit.services import record
from controlplane.core.addresses import check_address
from controlplane.core.clock import DatabaseNow, now
from controlplane.core.errors import Invalid
from controlplane.core.sealing import seal_text
from controlplane.teams.actors import Actor
from controlplane.webhooks import access, errors
from controlplane.webhooks.models import TEST_EVENT, Delivery, DeliveryState, Webhook
from controlplane.webhooks.publishing import event_body, new_event_id, ring
from controlplane.webhooks.schemas import Rotation, WebhookChanges, WebhookIn
from controlplane.webhooks.signing import new_secret

WEBHOOKS_PER_TEAM_MAX = 10
KEPT_FOR = timedelta(days=30)
"""From an event until its delivery is forgotten, delivered or not."""


def create_webhook(actor: Actor, body: WebhookIn, *, may_be_private: bool) -> tuple[Webhook, str]:
    """The webhook and its signing secret, which is told this once. Raises Invalid for the address, TooManyWebhooks."""
    check_address(("body", "url"), body.url, may_be_private=may_be_private, may_have_query=True)
    secret = new_secret()
    with transaction.atomic():
        if access.webhooks_of(actor).count() >= WEBHOOKS_PER_TEAM_MAX:
            raise errors.TooManyWebhooks(WEBHOOKS_PER_TEAM_MAX)
        columns = body.model_dump(mode="json")
        made = Webhook.objects.create(team=actor.team, created_by=actor.user, sealed_secret=seal_text(secret), **columns)
        record(actor, "webhook.created", kind="webhook", object_id=made.id, detail={"url": made.url})
    made.refresh_from_db()
    return made, secret


@transaction.atomic
def update_webhook(actor: Actor, webhook_id: str, changes: WebhookChanges, *, may_be_private: bool) -> Webhook:
    """Enabling one that we had disabled begins its count of failures anew; what is pending is sent."""
    given = changes.model_dump(mode="json", exclude_none=True)
    if not given:
        raise Invalid(("body",), "nothing to change: send url, event_types, description or is_enabled")
    if changes.url is not None:
        check_address(("body", "url"), changes.url, may_be_private=may_be_private, may_have_query=True)
    webhook = access.webhook_of(actor, webhook_id, lock=True)
    for name, value in given.items():
        setattr(webhook, name, value)
    if changes.is_enabled is not None:
        webhook.disabled_reason, webhook.first_failed_at = "", None
    webhook.updated_at = DatabaseNow()
    webhook.save()
    record(actor, "webhook.updated", kind="webhook", object_id=webhook.id, detail={"changed": sorted(given)})
    webhook.refresh_from_db()
    return webhook


@transaction.atomic
def delete_webhook(actor: Actor, webhook_id: str) -> None:
    """Its deliveries go with it, pending ones too."""
    webhook = access.webhook_of(actor, webhook_id, lock=True)
    record(actor, "webhook.deleted", kind="webhook", object_id=webhook.id, detail={"url": webhook.url})
    webhook.delete()


@transaction.atomic
def rotate_secret(actor: Actor, webhook_id: str, rotation: Rotation) -> tuple[Webhook, str]:
    """A new secret, told this once. Until the overlap is over the one of before signs as well."""
    webhook, secret = access.webhook_of(actor, webhook_id, lock=True), new_secret()
    webhook.sealed_previous_secret = webhook.sealed_secret if rotation.overlap_hours else ""
    webhook.previous_ends_at = now() + timedelta(hours=rotation.overlap_hours) if rotation.overlap_hours else None
    webhook.sealed_secret, webhook.updated_at = seal_text(secret), DatabaseNow()
    webhook.save()
    detail = {"overlap_hours": rotation.overlap_hours}
    record(actor, "webhook.secret_rotated", kind="webhook", object_id=webhook.id, detail=detail)
    webhook.refresh_from_db()
    return webhook, secret


@transaction.atomic
def send_test(actor: Actor, webhook_id: str) -> Delivery:
    """An event without meaning, one at a time. Raises WebhookDisabled, DeliveryPending."""
    webhook = _enabled(actor, webhook_id)
    if access.deliveries_of(webhook).filter(event_type=TEST_EVENT, state=DeliveryState.PENDING).exists():
        raise errors.DeliveryPending
    body = event_body(TEST_EVENT, {"webhook_id": webhook.id, "sent_by": actor.user.email})
    made = Delivery.objects.create(team=actor.team, webhook=webhook, event_id=new_event_id(), event_type=TEST_EVENT, body=body)
    transaction.on_commit(ring)
    made.refresh_from_db()
    return made


@transaction.atomic
def redeliver(actor: Actor, webhook_id: str, delivery_id: str) -> Delivery:
    """Send an event again under its own id, with as many attempts as a new one. Raises WebhookDisabled, DeliveryPending."""
    webhook = _enabled(actor, webhook_id)
    delivery = access.delivery_of(webhook, delivery_id, lock=True)
    if delivery.state == DeliveryState.PENDING:
        raise errors.DeliveryPending
    delivery.state, delivery.attempts_count, delivery.due_at = DeliveryState.PENDING, 0, DatabaseNow()
    delivery.response_status, delivery.duration_ms, delivery.response_text, delivery.error = None, None, "", ""
    delivery.save()
    record(actor, "webhook.redelivered", kind="webhook", object_id=webhook.id, detail={"event_id": delivery.event_id})
    transaction.on_commit(ring)
    delivery.refresh_from_db()
    return delivery


def forget_old() -> int:
    """Remove deliveries that are kept no longer; returns how many."""
    removed, _ = Delivery.objects.filter(created_at__lte=DatabaseNow() - KEPT_FOR).delete()
    return removed


def _enabled(actor: Actor, webhook_id: str) -> Webhook:
    webhook = access.webhook_of(actor, webhook_id, lock=True)
    if not webhook.is_enabled:
        raise errors.WebhookDisabled(webhook.id, webhook.disabled_reason)
    return webhook
