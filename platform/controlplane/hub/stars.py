"""Giving and taking a star. Twice is once."""

from controlplane.core.tenancy import acting_for
from controlplane.hub.models import Environment, Star
from controlplane.teams.actors import Actor


def give_star(actor: Actor, environment: Environment) -> None:
    personal_id = actor.user.personal_team.id
    with acting_for(personal_id):
        Star.objects.get_or_create(environment=environment, user=actor.user, defaults={"team_id": personal_id})


def take_star(actor: Actor, environment: Environment) -> None:
    with acting_for(actor.user.personal_team.id):
        Star.objects.filter(environment=environment, user=actor.user).delete()
