"""Records what was done. Called by services inside the transaction of the change: both are there, or neither."""

from typing import Any

from controlplane.audit.models import AuditEvent
from controlplane.core.requests import current_request_id
from controlplane.teams.actors import Actor


def record(actor: Actor, action: str, *, kind: str, object_id: str, detail: dict[str, Any] | None = None) -> None:
    """`action` is `<noun>.<verb in the past>`: `key.created`. Never a secret in `detail`."""
    AuditEvent.objects.create(
        team=actor.team,
        user=actor.user,
        key_prefix=actor.key.prefix if actor.key else "",
        action=action,
        object_kind=kind,
        object_id=object_id,
        detail=detail or {},
        request_id=current_request_id(),
    )


def record_by_system(team_id: str, action: str, *, kind: str, object_id: str, detail: dict[str, Any]) -> None:
    """What an operator did to a team's object, without an account: the event names no user."""
    AuditEvent.objects.create(team_id=team_id, action=action, object_kind=kind, object_id=object_id, detail=detail)
