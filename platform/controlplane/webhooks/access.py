"""The doors of webhooks: the only place that finds one by id, for an actor or for the sender, who acts on what was claimed."""

from django.db.models import QuerySet

from controlplane.teams.actors import Actor
from controlplane.webhooks.errors import no_delivery, no_webhook
from controlplane.webhooks.models import Delivery, DeliveryState, Webhook


def webhooks_of(actor: Actor) -> QuerySet[Webhook]:
    return Webhook.objects.filter(team=actor.team)


def webhook_of(actor: Actor, webhook_id: str, *, lock: bool = False) -> Webhook:
    """A webhook of the actor's team."""
    rows = webhooks_of(actor).filter(id=webhook_id)
    found = (rows.select_for_update() if lock else rows).first()
    if found is None:
        raise no_webhook(webhook_id)
    return found


def deliveries_of(webhook: Webhook) -> QuerySet[Delivery]:
    return Delivery.objects.filter(team_id=webhook.team_id, webhook=webhook)


def delivery_of(webhook: Webhook, delivery_id: str, *, lock: bool = False) -> Delivery:
    """A delivery to a webhook that was found for an actor."""
    rows = deliveries_of(webhook).filter(id=delivery_id)
    found = (rows.select_for_update() if lock else rows).first()
    if found is None:
        raise no_delivery(delivery_id)
    return found


def claimed_delivery(delivery_id: str, attempt: int) -> Delivery | None:
    """Under lock, for whoever made that attempt. None once it is settled, or another has claimed it."""
    rows = Delivery.objects.select_for_update()
    return rows.filter(id=delivery_id, attempts_count=attempt, state=DeliveryState.PENDING).first()


def webhook_of_delivery(delivery: Delivery) -> Webhook:
    """Under lock, for the sender."""
    return Webhook.objects.select_for_update().get(id=delivery.webhook_id)
