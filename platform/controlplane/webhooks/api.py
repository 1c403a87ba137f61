"""HTTP of webhooks: parse, door, service, render. No rule lives here."""

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.pagination import CursorQuery, cursor_page
from controlplane.core.schemas import query_parameters, read_body, read_query, render
from controlplane.core.views import ApiView
from controlplane.teams.actors import actor_in
from controlplane.webhooks import access, services
from controlplane.webhooks.schemas import (
    DeliveryAnswer,
    DeliveryOut,
    DeliveryPage,
    Rotation,
    WebhookAnswer,
    WebhookChanges,
    WebhookIn,
    WebhookList,
    WebhookMade,
    WebhookOut,
)


class WebhooksView(ApiView):
    scope = "webhooks"

    @extend_schema(operation_id="webhooks_list", responses=WebhookList)
    def get(self, request: Request) -> Response:
        """The team's webhooks, newest first, without their secrets."""
        rows = access.webhooks_of(actor_in(request)).order_by("-created_at", "-id")
        return render(WebhookList(webhooks=[WebhookOut.of(row) for row in rows]))

    @extend_schema(operation_id="webhooks_create", request=WebhookIn, responses=WebhookMade)
    def post(self, request: Request) -> Response:
        """Tell an address of the team's events. The answer holds the secret that signs them; it is never told again."""
        body = read_body(request, WebhookIn)
        made, secret = services.create_webhook(actor_in(request), body, may_be_private=settings.PRIVATE_WEBHOOKS)
        return render(WebhookMade(webhook=WebhookOut.of(made), secret=secret))


class WebhookView(ApiView):
    scope = "webhooks"

    @extend_schema(operation_id="webhooks_get", responses=WebhookAnswer)
    def get(self, request: Request, webhook_id: str) -> Response:
        """One webhook, without its secret."""
        return render(WebhookAnswer(webhook=WebhookOut.of(access.webhook_of(actor_in(request), webhook_id))))

    @extend_schema(operation_id="webhooks_update", request=WebhookChanges, responses=WebhookAnswer)
    def patch(self, request: Request, webhook_id: str) -> Response:
        """Change a webhook, or switch it off and on. What is pending goes to the new address."""
        actor, changes = actor_in(request), read_body(request, WebhookChanges)
        changed = services.update_webhook(actor, webhook_id, changes, may_be_private=settings.PRIVATE_WEBHOOKS)
        return render(WebhookAnswer(webhook=WebhookOut.of(changed)))

    @extend_schema(operation_id="webhooks_delete", responses={204: None})
    def delete(self, request: Request, webhook_id: str) -> Response:
        """Delete a webhook and what is pending for it."""
        services.delete_webhook(actor_in(request), webhook_id)
        return Response(status=204)


class RotateView(ApiView):
    scope = "webhooks"

    @extend_schema(operation_id="webhooks_rotate", request=Rotation, responses=WebhookMade)
    def post(self, request: Request, webhook_id: str) -> Response:
        """Sign with a new secret, told in this answer alone. The one of before signs as well until the overlap is over."""
        rotated, secret = services.rotate_secret(actor_in(request), webhook_id, read_body(request, Rotation))
        return render(WebhookMade(webhook=WebhookOut.of(rotated), secret=secret))


class WebhookTestView(ApiView):
    scope = "webhooks"

    @extend_schema(operation_id="webhooks_test", request=None, responses=DeliveryAnswer)
    def post(self, request: Request, webhook_id: str) -> Response:
        """Send an event `webhook.test`. It is pending in the answer; ask for the delivery to see what became of it."""
        return render(DeliveryAnswer(delivery=DeliveryOut.of(services.send_test(actor_in(request), webhook_id))))


class DeliveriesView(ApiView):
    scope = "webhooks"

    @extend_schema(operation_id="webhooks_deliveries_list", parameters=query_parameters(CursorQuery), responses=DeliveryPage)
    def get(self, request: Request, webhook_id: str) -> Response:
        """What was or is to be sent to a webhook, newest first, for thirty days."""
        rows = access.deliveries_of(access.webhook_of(actor_in(request), webhook_id))
        page = cursor_page(rows, read_query(request, CursorQuery), DeliveryOut.of)
        return render(DeliveryPage(**page))


class DeliveryView(ApiView):
    scope = "webhooks"

    @extend_schema(operation_id="webhooks_deliveries_get", responses=DeliveryAnswer)
    def get(self, request: Request, webhook_id: str, delivery_id: str) -> Response:
        """One delivery."""
        webhook = access.webhook_of(actor_in(request), webhook_id)
        return render(DeliveryAnswer(delivery=DeliveryOut.of(access.delivery_of(webhook, delivery_id))))


class RedeliverView(ApiView):
    scope = "webhooks"

    @extend_schema(operation_id="webhooks_deliveries_redeliver", request=None, responses=DeliveryAnswer)
    def post(self, request: Request, webhook_id: str, delivery_id: str) -> Response:
        """Send an event that is settled once more, under the same id."""
        sent = services.redeliver(actor_in(request), webhook_id, delivery_id)
        return render(DeliveryAnswer(delivery=DeliveryOut.of(sent)))
