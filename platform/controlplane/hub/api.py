"""HTTP face of the hub: parse, door, service, render. Shapes are the public client's (wire: env hub)."""

from django.http import HttpResponseRedirect
from drf_spectacular.utils import extend_schema
from pydantic import BaseModel
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.schemas import Answer, query_parameters, read_body, read_query, render
from controlplane.core.views import ApiView
from controlplane.hub import access, queries, services
from controlplane.hub.models import UploadKind, Visibility
from controlplane.hub.readme import readme_html
from controlplane.hub.schemas import (
    BadgeState,
    CheckLog,
    DeclareSource,
    DeclareUpload,
    EnvironmentList,
    EnvironmentStatus,
    Finalized,
    Found,
    Inspection,
    InspectQuery,
    ListQuery,
    LookupBody,
    Owner,
    Readme,
    ReleaseDetail,
    ResolveBody,
    Resolved,
    SourceDeclared,
    VersionRows,
    WheelDeclared,
)
from controlplane.teams.actors import Actor


class HubView(ApiView):
    """Reading needs no account; whoever has a credential is held to its scopes."""

    scope = "environments"
    open_to_visitors = True


def data(answer: Answer) -> Response:
    """The envelope of this area."""
    return Response({"data": answer.model_dump(mode="json")})


def enveloped(model: type[BaseModel]) -> type[BaseModel]:
    """The envelope, for the OpenAPI document."""
    return type(f"{model.__name__}Answer", (Answer,), {"__annotations__": {"data": model}, "__module__": __name__})


class EnvironmentsView(HubView):
    @extend_schema(operation_id="environments_list", parameters=query_parameters(ListQuery), responses=EnvironmentList)
    def get(self, request: Request) -> Response:
        """Public environments, and those of the caller's teams."""
        return render(queries.list_environments(request.user, read_query(request, ListQuery)))


class ResolveView(HubView):
    @extend_schema(operation_id="environments_resolve", request=ResolveBody, responses=enveloped(Resolved))
    def post(self, request: Request) -> Response:
        """Get or create `owner/name`. Another owner's environment is only looked up."""
        body = read_body(request, ResolveBody)
        actor: Actor = request.user
        owner = body.owner_slug or body.team_slug
        visibility = Visibility(body.visibility) if body.visibility else None
        if owner and owner not in access.owner_names_of(actor):
            environment, created = access.environment_by_name(actor, owner, body.name), False
        else:
            team = access.owning_team(actor, owner) if owner else actor.team
            environment, created = services.get_or_create_environment(team, body.name, visibility)
        return data(
            Resolved(
                id=environment.id,
                name=environment.name,
                owner=Owner(name=environment.team.slug),
                visibility=environment.visibility,
                created=created,
            )
        )


class LookupView(HubView):
    reads = frozenset({"post"})
    open_to_visitors = False

    @extend_schema(operation_id="environments_lookup", request=LookupBody, responses=enveloped(Found))
    def post(self, request: Request) -> Response:
        """Whether an id is that of an environment which the caller may see."""
        environment = access.environment_by_id(request.user, read_body(request, LookupBody).id)
        return data(Found(id=environment.id, name=environment.name, owner=Owner(name=environment.team.slug)))


class EnvironmentView(HubView):
    @extend_schema(operation_id="environments_delete", responses={204: None})
    def delete(self, request: Request, environment_id: str) -> Response:
        """Hide an environment for good."""
        services.delete_environment(access.owned_environment(request.user, environment_id))
        return Response(status=204)


class EnvironmentByNameView(HubView):
    @extend_schema(operation_id="environments_delete_by_name", responses={204: None})
    def delete(self, request: Request, owner: str, name: str) -> Response:
        """Hide an environment for good."""
        services.delete_environment(access.owned_environment_by_name(request.user, owner, name))
        return Response(status=204)


class WheelsView(HubView):
    @extend_schema(operation_id="environments_wheels_create", request=DeclareUpload, responses=enveloped(WheelDeclared))
    def post(self, request: Request, environment_id: str) -> Response:
        """Announce a wheel; the answer holds a signed address to PUT it to, or null when it is stored already."""
        environment = access.writable_environment(request.user, environment_id)
        upload, url = services.declare_upload(request.user, environment, read_body(request, DeclareUpload))
        return data(WheelDeclared(wheel_id=upload.id, upload_url=url))


class FinalizeWheelView(HubView):
    @extend_schema(operation_id="environments_wheels_finalize", request=None, responses=enveloped(Finalized))
    def post(self, request: Request, environment_id: str, wheel_id: str) -> Response:
        """Check an uploaded wheel and keep it."""
        upload = access.owned_upload(request.user, environment_id, wheel_id, UploadKind.WHEEL)
        services.finalize_wheel(upload)
        return data(Finalized(message=f"{upload.filename} is verified"))


class VersionsView(HubView):
    @extend_schema(operation_id="environments_versions_create", request=DeclareSource, responses=enveloped(SourceDeclared))
    def post(self, request: Request, environment_id: str) -> Response:
        """Announce the source archive of a release; the answer holds a signed address to PUT it to."""
        environment = access.writable_environment(request.user, environment_id)
        upload, url = services.declare_upload(request.user, environment, read_body(request, DeclareSource))
        return data(SourceDeclared(version_id=upload.id, upload_url=url or ""))


class FinalizeVersionView(HubView):
    @extend_schema(operation_id="environments_versions_finalize", request=None, responses=enveloped(Finalized))
    def post(self, request: Request, environment_id: str, version_id: str) -> Response:
        """Check an uploaded source archive and publish the release."""
        upload = access.owned_upload(request.user, environment_id, version_id, UploadKind.SOURCE)
        release = services.finalize_source(upload, client=request.headers.get("User-Agent", ""))
        return data(Finalized(message=f"{release.version} is published", release_id=release.id))


class ReleaseView(HubView):
    @extend_schema(operation_id="releases_get", responses=enveloped(ReleaseDetail))
    def get(self, request: Request, owner: str, name: str, version: str) -> Response:
        """One release, by version, content hash or `latest`. An API key that may read a private one gets the address of an index
        for installers, which opens that package alone and ends after an hour."""
        actor, release = request.user, access.release_by_name(request.user, owner, name, version)
        token = services.issue_index_token(actor, release.environment) if queries.needs_index_token(actor, release) else None
        return data(queries.release_detail(actor, release, token))

    @extend_schema(operation_id="releases_yank", responses={204: None})
    def delete(self, request: Request, owner: str, name: str, version: str) -> Response:
        """Withdraw a release."""
        environment = access.owned_environment_by_name(request.user, owner, name)
        services.yank_release(access.release_of(environment, version))
        return Response(status=204)


class InspectView(HubView):
    @extend_schema(operation_id="releases_inspect", parameters=query_parameters(InspectQuery), responses=enveloped(Inspection))
    def get(self, request: Request, owner: str, name: str, version: str) -> Response:
        """A folder or a file of the release's source."""
        query = read_query(request, InspectQuery)
        release = access.release_by_name(request.user, owner, name, version)
        return data(queries.inspect_release(release, query.path, query.max_bytes))


class SourceView(HubView):
    @extend_schema(operation_id="releases_source", responses={302: None})
    def get(self, request: Request, owner: str, name: str, version: str) -> HttpResponseRedirect:
        """Leads to the source archive."""
        return HttpResponseRedirect(queries.source_url(access.installable_release(request.user, owner, name, version)))


class ReadmeView(HubView):
    @extend_schema(operation_id="releases_readme", responses=enveloped(Readme))
    def get(self, request: Request, owner: str, name: str, version: str) -> Response:
        """The README, as cleaned HTML and as it was written."""
        text = access.release_by_name(request.user, owner, name, version).readme
        return data(Readme(html=readme_html(text), text=text))


class BadgeView(HubView):
    @extend_schema(operation_id="releases_badge", responses=enveloped(BadgeState))
    def get(self, request: Request, owner: str, name: str, version: str) -> Response:
        """What the check of the release has found."""
        return data(queries.badge_state(access.release_by_name(request.user, owner, name, version)))


class LogView(HubView):
    @extend_schema(operation_id="releases_log", responses=enveloped(CheckLog))
    def get(self, request: Request, owner: str, name: str, version: str) -> Response:
        """The log of the release's check."""
        return data(CheckLog(log=access.release_by_name(request.user, owner, name, version).log))


class CheckView(HubView):
    open_to_visitors = False

    @extend_schema(operation_id="releases_check", request=None, responses=enveloped(BadgeState))
    def post(self, request: Request, owner: str, name: str, version: str) -> Response:
        """Check a release once more. Its badge is PENDING until then."""
        environment = access.writable_environment_by_name(request.user, owner, name)
        release = access.release_of(environment, version)
        services.retry_check(release)
        return data(queries.badge_state(access.release_by_id(release.id)))


class StatusView(HubView):
    @extend_schema(operation_id="environments_status", responses=enveloped(EnvironmentStatus))
    def get(self, request: Request, owner: str, name: str) -> Response:
        """The environment and its latest release."""
        return data(queries.environment_status(access.environment_by_name(request.user, owner, name)))


class VersionListView(HubView):
    @extend_schema(operation_id="environments_versions_list", responses=enveloped(VersionRows))
    def get(self, request: Request, owner: str, name: str) -> Response:
        """Every release, the highest version first."""
        return data(queries.version_rows(access.environment_by_name(request.user, owner, name)))
