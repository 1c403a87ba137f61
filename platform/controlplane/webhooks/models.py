"""State of webhooks: addresses of a team, and what was or is to be sent to each. Knows columns and constraints; does no I/O."""

from enum import StrEnum

from django.db import models

from controlplane.core.clock import DatabaseNow
from controlplane.core.models import PUBLIC_ID_LENGTH, TenantModel

URL_LENGTH_MAX = 2_000
DESCRIPTION_LENGTH_MAX = 500
RESPONSE_LENGTH_MAX = 500
EVENT_ID_PREFIX = "msg_"


class EventType(StrEnum):
    """What a team can be told of."""

    RUN_COMPLETED = "run.completed"
    RUN_FAILED = "run.failed"
    RUN_STOPPED = "run.stopped"
    RUN_PAUSED = "run.paused"
    EVALUATION_COMPLETED = "evaluation.completed"
    EVALUATION_FAILED = "evaluation.failed"
    EVALUATION_CANCELLED = "evaluation.cancelled"
    RELEASE_CHECKED = "release.checked"
    DEPLOYMENT_READY = "deployment.ready"
    DEPLOYMENT_FAILED = "deployment.failed"
    WALLET_LOW = "wallet.low"


TEST_EVENT = "webhook.test"
"""Sent when its owner asks for it, whatever the webhook wants."""


class Webhook(TenantModel):
    """An address that a team wants told of events. No `event_types`: of all, those that are added later too.

    `sealed_secret` signs. After a change `sealed_previous_secret` signs as well, until `previous_ends_at`. `first_failed_at` is
    the first failure after the last success; a webhook that was switched off by us says why in `disabled_reason`.
    """

    created_by = models.ForeignKey("teams.User", on_delete=models.PROTECT, related_name="+")
    created_by_id: str
    url = models.CharField(max_length=URL_LENGTH_MAX)
    event_types: "models.JSONField[list[str], list[str]]" = models.JSONField(default=list)
    description = models.CharField(max_length=DESCRIPTION_LENGTH_MAX, blank=True, default="")
    is_enabled = models.BooleanField(default=True)
    disabled_reason = models.CharField(max_length=200, blank=True, default="")
    sealed_secret = models.TextField()
    sealed_previous_secret = models.TextField(blank=True, default="")
    previous_ends_at = models.DateTimeField(null=True)
    first_failed_at = models.DateTimeField(null=True)
    updated_at = models.DateTimeField(db_default=DatabaseNow())

    class Meta:
        indexes = (models.Index(fields=["team", "-created_at"], name="webhook_newest_of_team"),)

    def __str__(self) -> str:
        return self.url


class DeliveryState(models.TextChoices):
    PENDING = "PENDING"
    DELIVERED = "DELIVERED"
    FAILED = "FAILED"


class Delivery(TenantModel):
    """One event on its way to one webhook. `event_id` and `body` are the same at every attempt, so that a receiver can tell a
    repetition. While it is pending, `due_at` is its next attempt, or the end of the claim of whoever is at it."""

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="deliveries")
    webhook_id: str
    event_id = models.CharField(max_length=len(EVENT_ID_PREFIX) + PUBLIC_ID_LENGTH)
    event_type = models.CharField(max_length=64)
    body = models.TextField()
    state = models.CharField(max_length=9, choices=DeliveryState, default=DeliveryState.PENDING)
    attempts_count = models.PositiveIntegerField(default=0)
    due_at = models.DateTimeField(db_default=DatabaseNow())
    attempted_at = models.DateTimeField(null=True)
    duration_ms = models.PositiveIntegerField(null=True)
    response_status = models.PositiveSmallIntegerField(null=True)
    response_text = models.CharField(max_length=RESPONSE_LENGTH_MAX, blank=True, default="")
    error = models.CharField(max_length=RESPONSE_LENGTH_MAX, blank=True, default="")

    class Meta:
        constraints = (models.UniqueConstraint(fields=["webhook", "event_id"], name="delivery_once_per_event"),)
        indexes = (
            models.Index(fields=["webhook", "-created_at"], name="delivery_newest_of_webhook"),
            models.Index(fields=["due_at", "id"], name="delivery_pending", condition=models.Q(state="PENDING")),
        )

    def __str__(self) -> str:
        return f"{self.event_type} ({self.state})"
