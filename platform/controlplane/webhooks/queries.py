"""Read models of webhooks: who wants to be told of what. Writes nothing."""

from django.db.models import Q, QuerySet

from controlplane.webhooks.models import Webhook


def listening(team_id: str, event_type: str) -> QuerySet[Webhook]:
    """The team's enabled webhooks that want an event."""
    wants_it = Q(event_types=[]) | Q(event_types__contains=[event_type])
    return Webhook.objects.filter(wants_it, team_id=team_id, is_enabled=True)
