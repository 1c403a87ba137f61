"""The audit log as the API shows it."""

from datetime import datetime
from typing import Any

from controlplane.audit.models import AuditEvent
from controlplane.core.schemas import Answer


class AuditEventOut(Answer):
    id: str
    created_at: datetime
    action: str
    object_kind: str
    object_id: str
    user_id: str | None
    user_email: str | None
    key_prefix: str
    detail: dict[str, Any]
    request_id: str

    @classmethod
    def of(cls, event: AuditEvent) -> "AuditEventOut":
        return cls(
            id=event.id,
            created_at=event.created_at,
            action=event.action,
            object_kind=event.object_kind,
            object_id=event.object_id,
            user_id=event.user_id,
            user_email=event.user.email if event.user else None,
            key_prefix=event.key_prefix,
            detail=event.detail,
            request_id=event.request_id,
        )


class AuditPage(Answer):
    items: list[AuditEventOut]
    next_cursor: str | None
