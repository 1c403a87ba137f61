"""Who beside the owning team may read an environment and push releases of it. The team's members decide.

A collaborator cannot delete, yank, change who sees it, or invite others.
"""

from django.db import transaction

from controlplane.audit.services import record
from controlplane.core.errors import Invalid
from controlplane.core.tenancy import acting_for
from controlplane.hub import access, errors
from controlplane.hub.models import Collaborator, Environment
from controlplane.teams.access import actor_for
from controlplane.teams.actors import Actor

COLLABORATORS_MAX = 100


def invite(actor: Actor, environment: Environment, name: str) -> Collaborator:
    """Let the user of that public name in. Raises NotFound for a name that nobody has."""
    user = access.user_by_public_name(name)
    owner = actor_for(actor.user, team_id=environment.team_id, key=actor.key)
    with acting_for(environment.team_id), transaction.atomic():
        if Collaborator.objects.filter(environment=environment).count() >= COLLABORATORS_MAX:
            raise Invalid(("body", "user"), f"an environment has at most {COLLABORATORS_MAX} collaborators")
        row, created = Collaborator.objects.get_or_create(
            environment=environment, user=user, defaults={"team_id": environment.team_id}
        )
        if created:
            record(owner, "environment.collaborator_invited", kind="environment", object_id=environment.id, detail={"user": name})
    return row


def remove(actor: Actor, environment: Environment, name: str) -> None:
    """Their releases stay. Raises NotFound for a name that is no collaborator's."""
    owner = actor_for(actor.user, team_id=environment.team_id, key=actor.key)
    with acting_for(environment.team_id), transaction.atomic():
        gone, _ = Collaborator.objects.filter(environment=environment, user__personal_team__slug=name).delete()
        if not gone:
            raise errors.no_collaborator(name)
        record(owner, "environment.collaborator_removed", kind="environment", object_id=environment.id, detail={"user": name})
