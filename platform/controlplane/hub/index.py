"""The hub as a package index (PEP 503, PEP 691), for installers, which send no credentials.

An index shows one environment and no other: no name of the hub shadows a public package, not even one of the same owner's. Two
roots: a public environment by its name, a private one by a token that stands in the address (`IndexToken`). Pages are HTML or,
for whoever prefers it, JSON; files can be had in ranges.
"""

from typing import TypeVar

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.views.decorators.http import require_safe

from controlplane.core.errors import NotFound
from controlplane.core.objects import store
from controlplane.core.objects.sending import requested_part
from controlplane.hub import access, index_pages
from controlplane.hub.models import Environment
from controlplane.hub.names import normalize

A = TypeVar("A", HttpResponse, StreamingHttpResponse)


@require_safe
def environment_index(request: HttpRequest, owner: str, name: str) -> HttpResponse:
    """The projects of this index: one."""
    return index_pages.project_list(request, access.environment_by_name(None, owner, name))


@require_safe
def environment_project(request: HttpRequest, owner: str, name: str, project: str) -> HttpResponse:
    return _project(request, access.environment_by_name(None, owner, name), project)


@require_safe
def environment_package(request: HttpRequest, owner: str, name: str, filename: str) -> StreamingHttpResponse:
    """A wheel's bytes."""
    return _package(request, access.environment_by_name(None, owner, name), filename)


@require_safe
def token_index(request: HttpRequest, token: str) -> HttpResponse:
    return _private(index_pages.project_list(request, access.environment_by_index_token(token)))


@require_safe
def token_project(request: HttpRequest, token: str, project: str) -> HttpResponse:
    return _private(_project(request, access.environment_by_index_token(token), project))


@require_safe
def token_package(request: HttpRequest, token: str, filename: str) -> StreamingHttpResponse:
    return _private(_package(request, access.environment_by_index_token(token), filename))


def _project(request: HttpRequest, environment: Environment, project: str) -> HttpResponse:
    if normalize(project) != environment.normalized_name:
        raise NotFound(f"There is no project '{project}' in this index.")
    return index_pages.project(request, environment, access.releases_of(environment))


def _package(request: HttpRequest, environment: Environment, filename: str) -> StreamingHttpResponse:
    release = access.wheel_of(environment, filename)
    return requested_part(request, store().open(release.wheel_key), filename=filename, size_bytes=release.wheel_size_bytes)


def _private(answer: A) -> A:
    answer["Cache-Control"] = "private, no-store"
    return answer
