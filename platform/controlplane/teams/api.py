"""HTTP face of users, teams and keys: parse, door, service, render."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.pagination import CursorQuery, cursor_page, offset_page
from controlplane.core.schemas import query_parameters, read_body, read_query, render
from controlplane.core.tenancy import acting_for
from controlplane.core.views import ApiView
from controlplane.teams import access, services
from controlplane.teams.actors import actor_in
from controlplane.teams.models import Role
from controlplane.teams.schemas import (
    KeyIn,
    KeyList,
    KeyMade,
    KeyOut,
    MemberAnswer,
    MemberIn,
    MemberPage,
    MemberRow,
    Page,
    SlugIn,
    TeamAnswer,
    TeamIn,
    TeamOut,
    TeamPage,
    TeamRow,
    UserAnswer,
    UserOut,
    WhoAmI,
    WhoAmIAnswer,
    page_of,
)


class WhoAmIView(ApiView):
    scope = "teams"

    @extend_schema(operation_id="user_whoami", responses=WhoAmIAnswer)
    def get(self, request: Request) -> Response:
        """The user behind the credential, and what the credential may do."""
        return render(WhoAmIAnswer(data=WhoAmI.of(actor_in(request))))


class SlugView(ApiView):
    scope = "teams"

    @extend_schema(operation_id="user_slug_update", request=SlugIn, responses=UserAnswer)
    def patch(self, request: Request) -> Response:
        """Choose the user's public name."""
        user = services.change_slug(actor_in(request), read_body(request, SlugIn).slug)
        return render(UserAnswer(data=UserOut.of(user)))


class MyTeamsView(ApiView):
    scope = "teams"

    @extend_schema(operation_id="user_teams_list", parameters=query_parameters(Page), responses=TeamPage)
    def get(self, request: Request) -> Response:
        """Shared teams of the user. The personal team is what no team means."""
        shared = [one for one in access.memberships_of(actor_in(request).user) if one.team.personal_of_id is None]
        rows = [TeamRow.of(one).model_dump(mode="json") for one in shared]
        return Response(page_of(rows, read_query(request, Page)))


class TeamsView(ApiView):
    scope = "teams"

    @extend_schema(operation_id="teams_create", request=TeamIn, responses={201: TeamAnswer})
    def post(self, request: Request) -> Response:
        """Make a shared team."""
        body = read_body(request, TeamIn)
        team = services.create_team(actor_in(request), name=body.name, slug=body.slug)
        return render(TeamAnswer(data=TeamOut.of(team, Role.ADMIN)), status=201)


class MembersView(ApiView):
    scope = "teams"

    @extend_schema(operation_id="team_members_list", parameters=query_parameters(Page), responses=MemberPage)
    def get(self, request: Request, team_id: str) -> Response:
        """Who is in the team."""
        team = access.team_of_member(actor_in(request), team_id)
        with acting_for(team.id):
            page = offset_page(
                access.members_of(team), read_query(request, Page), lambda one: MemberRow.of(one).model_dump(mode="json")
            )
        return Response(page)

    @extend_schema(operation_id="team_members_add", request=MemberIn, responses={201: MemberAnswer})
    def post(self, request: Request, team_id: str) -> Response:
        """Add a user, or change a member's role. Admins only."""
        actor = access.actor_for(actor_in(request).user, team_id=team_id, key=actor_in(request).key)
        body = read_body(request, MemberIn)
        membership = services.add_member(actor, email=body.email, role=Role(body.role))
        return render(MemberAnswer(data=MemberRow.of(membership)), status=201)


class MemberView(ApiView):
    scope = "teams"

    @extend_schema(operation_id="team_members_remove", responses={204: None})
    def delete(self, request: Request, team_id: str, user_id: str) -> Response:
        """Take a member out of the team, or leave it. Admins only, but for oneself."""
        actor = access.actor_for(actor_in(request).user, team_id=team_id, key=actor_in(request).key)
        services.remove_member(actor, user_id)
        return Response(status=204)


class KeysView(ApiView):
    scope = "keys"

    @extend_schema(operation_id="keys_list", parameters=query_parameters(CursorQuery), responses=KeyList)
    def get(self, request: Request) -> Response:
        """Live keys of the user, newest first."""
        actor, query = actor_in(request), read_query(request, CursorQuery)
        with acting_for(actor.user.personal_team.id):
            page = cursor_page(access.keys_of(actor), query, KeyOut.of)
        return render(KeyList.model_validate(page))

    @extend_schema(operation_id="keys_create", request=KeyIn, responses={201: KeyMade})
    def post(self, request: Request) -> Response:
        """Make a key. Its text is in this answer and nowhere else."""
        body = read_body(request, KeyIn)
        key, text = services.create_key(actor_in(request), name=body.name, scopes=body.scopes, expires_at=body.expires_at)
        return render(KeyMade(**KeyOut.of(key).model_dump(), key=text), status=201)


class KeyView(ApiView):
    scope = "keys"

    @extend_schema(operation_id="keys_revoke", responses={204: None})
    def delete(self, request: Request, key_id: str) -> Response:
        """End a key."""
        services.revoke_key(actor_in(request), key_id)
        return Response(status=204)
