"""Forking: a release of somebody's environment becomes the first release of one of the actor's team, private at first.

The artefacts are those of the original, by their digests, so that nothing is copied or judged again; the check runs again.
"""

from django.db import transaction

from controlplane.core import outbox
from controlplane.core.errors import Conflict
from controlplane.core.tenancy import acting_for
from controlplane.hub import access, services
from controlplane.hub.models import Environment, Release, Visibility
from controlplane.teams.actors import Actor
from controlplane.teams.models import Team
from trainer.contracts.base import new_id

SHARED = (
    "version", "content_hash", "folder_hash", "module", "metadata", "readme", "runtime_hint", "depends_on", "allows_prereleases",
    "wheel_filename", "wheel_sha256", "wheel_size_bytes", "wheel_key",
    "source_filename", "source_sha256", "source_size_bytes", "source_key",
)  # fmt: skip
"""What a fork has in common with its original: everything that was pushed."""


def fork(actor: Actor, original: Release, team: Team) -> Release:
    """Raises Conflict where the team has an environment of that name."""
    access.refuse_quarantined(actor, original)
    source = original.environment
    _refuse_taken(team, source)
    environment, _ = services.get_or_create_environment(team, source.name, Visibility.PRIVATE)
    with acting_for(team.id), transaction.atomic():
        release = Release.objects.create(
            id=new_id(),
            team=team,
            environment=environment,
            created_by=actor.user,
            provenance={"client": "fork"},
            **{name: getattr(original, name) for name in SHARED},
        )
        Environment.objects.filter(id=environment.id).update(forked_from=original)
        services.describe(environment, {"description": source.description, "tags": source.tags}, original.readme)
        outbox.emit(task=services.CHECK_TASK, key=f"release:{release.id}:check", payload={"release_id": release.id})
    return release


def _refuse_taken(team: Team, source: Environment) -> None:
    """A deleted environment counts too: its versions stay taken."""
    with acting_for(team.id):
        is_taken = Environment.objects.filter(team=team, normalized_name=source.normalized_name).exists()
    if is_taken:
        hint = "Fork it for another team, or pull it and push your changes under a name of its own."
        raise Conflict(f"{team.slug}/{source.name} exists already.", hint=hint)
