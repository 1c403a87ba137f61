"""The hub as a package index (PEP 503), for installers, which send no credentials: public environments only.

Two roots: one environment alone, which is what we give to clients, so that an owner's other projects cannot shadow a public
dependency of the same name; and all of an owner's.
"""

from collections.abc import Iterable

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.utils.html import format_html, format_html_join
from django.views.decorators.http import require_safe

from controlplane.core.errors import NotFound
from controlplane.core.objects import store
from controlplane.core.objects.sending import attachment
from controlplane.core.tenancy import acting_as_system
from controlplane.hub import access, queries
from controlplane.hub.models import Environment, Release
from controlplane.hub.names import normalize


@require_safe
def owner_index(request: HttpRequest, owner: str) -> HttpResponse:
    """Every public project of an owner."""
    with acting_as_system():
        projects = list(access.visible_environments(None).filter(team__slug=owner).order_by("normalized_name"))
    return _page(owner, [(f"{project.normalized_name}/", project.name) for project in projects])


@require_safe
def owner_project(request: HttpRequest, owner: str, project: str) -> HttpResponse:
    return _files(access.environment_by_name(None, owner, project))


@require_safe
def environment_index(request: HttpRequest, owner: str, name: str) -> HttpResponse:
    """One project and no other."""
    environment = access.environment_by_name(None, owner, name)
    return _page(environment.slug, [(f"{environment.normalized_name}/", environment.name)])


@require_safe
def environment_project(request: HttpRequest, owner: str, name: str, project: str) -> HttpResponse:
    if normalize(project) != normalize(name):
        raise NotFound(f"There is no project '{project}' in this index.")
    return _files(access.environment_by_name(None, owner, name))


@require_safe
def package(request: HttpRequest, owner: str, name: str, filename: str) -> StreamingHttpResponse:
    """A wheel's bytes."""
    release = access.published_wheel(owner, name, filename)
    return attachment(store().open(release.wheel_key), filename=filename, size_bytes=release.wheel_size_bytes)


def _files(environment: Environment) -> HttpResponse:
    offered = [release for release in access.releases_of(environment) if release.yanked_at is None]
    return _page(environment.slug, [(_anchor(release), release.wheel_filename) for release in offered])


def _anchor(release: Release) -> str:
    return f"{queries.wheel_url(release)}#sha256={release.wheel_sha256}"


def _page(title: str, links: Iterable[tuple[str, str]]) -> HttpResponse:
    anchors = format_html_join("\n", '<a href="{}">{}</a><br>', links)
    return HttpResponse(format_html("<!doctype html>\n<title>{}</title>\n<body>\n{}\n</body>\n", title, anchors))
