"""The doors of secrets and variables: the only place that finds one by id, always for an actor.

A team sets values for its own environments and, since nobody else's work gets them, for any other that it may see. The public
client names no team when it speaks of an environment: that of the environment is meant where the actor belongs to it, else the
acting one.
"""

from dataclasses import dataclass

from django.db.models import QuerySet

from controlplane.core.tenancy import acting_for
from controlplane.hub.access import environment_by_id, team_ids_of
from controlplane.hub.models import Environment
from controlplane.secrets.errors import LinkedSecret, no_secret, no_setting
from controlplane.secrets.models import Link, Secret, Setting
from controlplane.teams.access import actor_for
from controlplane.teams.actors import Actor


@dataclass(frozen=True)
class Place:
    """An environment, and who sets values for it: `actor` acts for the team whose rows are meant."""

    actor: Actor
    environment: Environment


def place_of(actor: Actor, environment_id: str) -> Place:
    environment = environment_by_id(actor, environment_id)
    if environment.team_id != actor.team_id and environment.team_id in team_ids_of(actor):
        actor = actor_for(actor.user, team_id=environment.team_id, key=actor.key)
    return Place(actor, environment)


def secrets_of(actor: Actor) -> QuerySet[Secret]:
    return Secret.objects.filter(team=actor.team).prefetch_related("links")


def secret_of(actor: Actor, secret_id: str) -> Secret:
    """A secret of the actor's team."""
    with acting_for(actor.team_id):
        found = secrets_of(actor).filter(id=secret_id).first()
    if found is None:
        raise no_secret(secret_id)
    return found


def settings_of(place: Place, *, is_secret: bool) -> QuerySet[Setting]:
    """Unevaluated: read it acting for the place's team."""
    return Setting.objects.filter(team=place.actor.team, environment=place.environment, is_secret=is_secret).order_by("name")


def links_of(place: Place) -> QuerySet[Link]:
    """Unevaluated: read it acting for the place's team."""
    rows = Link.objects.filter(team=place.actor.team, environment=place.environment)
    return rows.select_related("secret").order_by("secret__name")


def setting_of(place: Place, setting_id: str, *, is_secret: bool) -> Setting:
    """Raises NotFound, and LinkedSecret where the id is that of a team's secret which is linked here."""
    with acting_for(place.actor.team_id):
        found = settings_of(place, is_secret=is_secret).filter(id=setting_id).first()
        if found is not None:
            return found
        link = links_of(place).filter(secret_id=setting_id).first() if is_secret else None
    if link is not None:
        raise LinkedSecret(link.secret.name, link.secret_id)
    raise no_setting(setting_id)


def link_of(place: Place, secret_id: str) -> Link:
    with acting_for(place.actor.team_id):
        found = links_of(place).filter(secret_id=secret_id).first()
    if found is None:
        raise no_setting(secret_id)
    return found
