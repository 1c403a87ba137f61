"""Reads of the audit log."""

from django.db.models import QuerySet

from controlplane.audit.models import AuditEvent
from controlplane.teams.actors import Actor


def list_events(actor: Actor) -> QuerySet[AuditEvent]:
    """The team's events. Row-level security and the condition say the same."""
    return AuditEvent.objects.filter(team=actor.team).select_related("user")
