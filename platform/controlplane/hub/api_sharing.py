"""HTTP face of what people do with each other's environments: stars, forks, collaborators, dependants."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.schemas import read_body
from controlplane.hub import access, collaborators, forks, queries, stars
from controlplane.hub.api import HubView, data, enveloped
from controlplane.hub.dependants import related_to
from controlplane.hub.schemas import CollaboratorRows, ForkBody, Forked, InviteBody, Related, Stars
from controlplane.teams.actors import actor_in


class RelatedView(HubView):
    @extend_schema(operation_id="environments_related", responses=enveloped(Related))
    def get(self, request: Request, owner: str, name: str) -> Response:
        """Environments that depend on this one, and its forks."""
        return data(related_to(request.user, access.environment_by_name(request.user, owner, name)))


class StarView(HubView):
    open_to_visitors = False

    @extend_schema(operation_id="environments_star", request=None, responses=enveloped(Stars))
    def post(self, request: Request, owner: str, name: str) -> Response:
        """Give a star. Twice is once."""
        environment = access.environment_by_name(request.user, owner, name)
        stars.give_star(actor_in(request), environment)
        return data(queries.stars_of(request.user, environment))

    @extend_schema(operation_id="environments_unstar", responses={200: enveloped(Stars)})
    def delete(self, request: Request, owner: str, name: str) -> Response:
        """Take the star back."""
        environment = access.environment_by_name(request.user, owner, name)
        stars.take_star(actor_in(request), environment)
        return data(queries.stars_of(request.user, environment))


class ForkView(HubView):
    open_to_visitors = False

    @extend_schema(operation_id="environments_fork", request=ForkBody, responses=enveloped(Forked))
    def post(self, request: Request, owner: str, name: str) -> Response:
        """Make the latest release the first one of an environment of the acting team, private at first."""
        body, actor = read_body(request, ForkBody), actor_in(request)
        team = access.owning_team(actor, body.team_slug) if body.team_slug else actor.team
        original = access.installable_release(actor, owner, name, access.LATEST)
        release = forks.fork(actor, original, team)
        return data(Forked(slug=release.environment.slug, environment_id=release.environment_id, version_id=release.id))


class CollaboratorsView(HubView):
    open_to_visitors = False

    @extend_schema(operation_id="environments_collaborators", responses=enveloped(CollaboratorRows))
    def get(self, request: Request, owner: str, name: str) -> Response:
        """Who beside the owning team may push. For those who may push."""
        return data(queries.collaborator_rows(access.writable_environment_by_name(actor_in(request), owner, name)))

    @extend_schema(operation_id="environments_collaborators_invite", request=InviteBody, responses=enveloped(CollaboratorRows))
    def post(self, request: Request, owner: str, name: str) -> Response:
        """Let a user read the environment and push releases of it."""
        environment = access.owned_environment_by_name(actor_in(request), owner, name)
        collaborators.invite(actor_in(request), environment, read_body(request, InviteBody).user)
        return data(queries.collaborator_rows(environment))


class CollaboratorView(HubView):
    open_to_visitors = False

    @extend_schema(operation_id="environments_collaborators_remove", responses={204: None})
    def delete(self, request: Request, owner: str, name: str, collaborator: str) -> Response:
        """Take a collaborator's rights back; their releases stay."""
        environment = access.owned_environment_by_name(actor_in(request), owner, name)
        collaborators.remove(actor_in(request), environment, collaborator)
        return Response(status=204)
