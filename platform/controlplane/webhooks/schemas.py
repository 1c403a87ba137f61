"""Bodies of the webhooks API. A secret stands in the answers to creating and rotating, and in no other."""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field

from controlplane.core.schemas import Answer, Body, example
from controlplane.webhooks.models import DESCRIPTION_LENGTH_MAX, URL_LENGTH_MAX, Delivery, EventType, Webhook

OVERLAP_HOURS_MAX = 168
Url = Annotated[str, Field(min_length=1, max_length=URL_LENGTH_MAX, pattern=r"^[^\x00]+$")]
Events = Annotated[list[EventType], Field(max_length=len(EventType))]
Description = Annotated[str, Field(max_length=DESCRIPTION_LENGTH_MAX, pattern=r"^[^\x00]*$")]


class WebhookIn(Body):
    """A new webhook. Without `event_types` it is told of all events, those that are added later too."""

    model_config = Body.model_config | example(
        {"url": "https://ci.example.com/hooks/rootstock", "event_types": ["run.completed"]}
    )

    url: Url
    event_types: Events = []
    description: Description = ""
    is_enabled: bool = True


class WebhookChanges(Body):
    """What is left out stays as it is."""

    url: Url | None = None
    event_types: Events | None = None
    description: Description | None = None
    is_enabled: bool | None = None


class Rotation(Body):
    """For so long the secret of before signs as well."""

    overlap_hours: Annotated[int, Field(ge=0, le=OVERLAP_HOURS_MAX)] = 24


class WebhookOut(Answer):
    """`disabled_reason` says why we have switched it off; `failing_since` is null while it is heard."""

    id: str
    url: str
    event_types: list[str]
    description: str
    is_enabled: bool
    disabled_reason: str
    failing_since: datetime | None
    previous_secret_until: datetime | None
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, row: Webhook) -> Self:
        return cls(
            id=row.id,
            url=row.url,
            event_types=row.event_types,
            description=row.description,
            is_enabled=row.is_enabled,
            disabled_reason=row.disabled_reason,
            failing_since=row.first_failed_at,
            previous_secret_until=row.previous_ends_at,
            created_at=row.created_at,
            updated_at=row.updated_at,
        )


class WebhookList(Answer):
    webhooks: list[WebhookOut]


class WebhookAnswer(Answer):
    webhook: WebhookOut


class WebhookMade(Answer):
    """`secret` is told here and never again."""

    webhook: WebhookOut
    secret: str


class DeliveryOut(Answer):
    """One event for one webhook. `response_text` begins the last answer; `next_attempt_at` is null once it is settled."""

    id: str
    event_id: str
    event_type: str
    state: Literal["PENDING", "DELIVERED", "FAILED"]
    attempts: int
    next_attempt_at: datetime | None
    attempted_at: datetime | None
    duration_ms: int | None
    response_status: int | None
    response_text: str
    error: str
    body: str
    created_at: datetime

    @classmethod
    def of(cls, row: Delivery) -> Self:
        is_pending = row.state == "PENDING"
        return cls(
            id=row.id,
            event_id=row.event_id,
            event_type=row.event_type,
            state="PENDING" if is_pending else "DELIVERED" if row.state == "DELIVERED" else "FAILED",
            attempts=row.attempts_count,
            next_attempt_at=row.due_at if is_pending else None,
            attempted_at=row.attempted_at,
            duration_ms=row.duration_ms,
            response_status=row.response_status,
            response_text=row.response_text,
            error=row.error,
            body=row.body,
            created_at=row.created_at,
        )


class DeliveryAnswer(Answer):
    delivery: DeliveryOut


class DeliveryPage(Answer):
    items: list[DeliveryOut]
    next_cursor: str | None
