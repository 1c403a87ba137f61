"""What can go wrong with webhooks, in the words that their owners need."""

from controlplane.core.errors import Conflict, NotFound


class TooManyWebhooks(Conflict):
    code = "too_many_webhooks"

    def __init__(self, most: int) -> None:
        super().__init__(f"A team has at most {most} webhooks.", hint="Delete one, or let one take more events.")


class WebhookDisabled(Conflict):
    """Nothing is sent to it."""

    code = "webhook_disabled"

    def __init__(self, webhook_id: str, reason: str) -> None:
        why = f": {reason}" if reason else ""
        super().__init__(f"The webhook is disabled{why}.", hint=f"`prime webhook update {webhook_id} --enable` sends again.")


class DeliveryPending(Conflict):
    """What was asked for is on its way already."""

    code = "delivery_pending"

    def __init__(self) -> None:
        super().__init__("It is on its way already.", hint="`prime webhook deliveries` shows the next attempt.")


def no_webhook(webhook_id: str) -> NotFound:
    return NotFound(f"There is no webhook '{webhook_id}'.", hint="`prime webhook list` shows the team's.")


def no_delivery(delivery_id: str) -> NotFound:
    return NotFound(f"The webhook has no delivery '{delivery_id}'.", hint="`prime webhook deliveries` shows the newest.")
