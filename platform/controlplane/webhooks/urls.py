"""Routes of the app, below `/api/v1`."""

from django.urls import URLPattern

from controlplane.core.routes import endpoint
from controlplane.webhooks import api

WEBHOOK = "webhooks/<str:webhook_id>"

urlpatterns: list[URLPattern] = [
    *endpoint("webhooks", api.WebhooksView),
    *endpoint(WEBHOOK, api.WebhookView),
    *endpoint(f"{WEBHOOK}/rotate", api.RotateView),
    *endpoint(f"{WEBHOOK}/test", api.WebhookTestView),
    *endpoint(f"{WEBHOOK}/deliveries", api.DeliveriesView),
    *endpoint(f"{WEBHOOK}/deliveries/<str:delivery_id>", api.DeliveryView),
    *endpoint(f"{WEBHOOK}/deliveries/<str:delivery_id>/redeliver", api.RedeliverView),
]
