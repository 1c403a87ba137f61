"""The two spellings of an index page: HTML (PEP 503) and JSON (PEP 691 with PEP 700's fields), chosen by `Accept`. Renders; finds
nothing.

A yanked release stays listed and is marked (PEP 592): installers pass it over unless it is asked for by its exact version. One in
quarantine is not listed. Files are named relative to the page, so that a page behind a token leads on behind the same token.
"""

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.html import format_html, format_html_join
from packaging.specifiers import InvalidSpecifier, SpecifierSet

from controlplane.hub.models import Environment, Release

JSON = "application/vnd.pypi.simple.v1+json"
HTML = "application/vnd.pypi.simple.v1+html"
PLAIN = "text/html"
ALIASES = {"application/vnd.pypi.simple.latest+json": JSON, "application/vnd.pypi.simple.latest+html": HTML}
API_VERSION = "1.1"
YANKED = "withdrawn by its owner"


def project_list(request: HttpRequest, environment: Environment) -> HttpResponse:
    """The root of an index: the one project that it has."""
    name = environment.normalized_name
    if chosen_type(request) == JSON:
        return _json({"projects": [{"name": name}]})
    return _html(request, environment.slug, format_html('<a href="{}/">{}</a>', name, name))


def project(request: HttpRequest, environment: Environment, releases: Sequence[Release]) -> HttpResponse:
    """The files of a project."""
    offered = [release for release in releases if release.quarantined_at is None]
    if chosen_type(request) == JSON:
        files, versions = [_file(release) for release in offered], [release.version for release in offered]
        return _json({"name": environment.normalized_name, "versions": versions, "files": files})
    return _html(request, environment.slug, format_html_join("\n", "{}", ((_anchor(release),) for release in offered)))


def chosen_type(request: HttpRequest) -> str:
    """The best of what the client accepts; HTML for one that says nothing we know, as PEP 691 allows."""
    best, best_weight = PLAIN, 0.0
    for offer in request.headers.get("Accept", "").split(",")[:20]:
        name, *parameters = (part.strip().lower() for part in offer.split(";"))
        wanted, weight = ALIASES.get(name, name), _weight(parameters)
        if wanted in (JSON, HTML, PLAIN) and weight > best_weight:
            best, best_weight = wanted, weight
    return best


def _weight(parameters: Sequence[str]) -> float:
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return float(parameter[2:])
            except ValueError:
                return 0.0
    return 1.0


def _file(release: Release) -> dict[str, Any]:
    return {
        "filename": release.wheel_filename,
        "url": _address(release),
        "hashes": {"sha256": release.wheel_sha256},
        "size": release.wheel_size_bytes,
        "upload-time": release.created_at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "yanked": YANKED if release.yanked_at else False,
        **({"requires-python": needed} if (needed := _requires_python(release)) else {}),
    }


def _anchor(release: Release) -> str:
    needed = _requires_python(release)
    marks = format_html(' data-requires-python="{}"', needed) if needed else ""
    yanked = format_html(' data-yanked="{}"', YANKED) if release.yanked_at else ""
    address = f"{_address(release)}#sha256={release.wheel_sha256}"
    return format_html('<a href="{}"{}{}>{}</a><br>', address, marks, yanked, release.wheel_filename)


def _address(release: Release) -> str:
    """From `…/simple/PROJECT/` to `…/packages/FILE`."""
    return f"../../packages/{release.wheel_filename}"


def _requires_python(release: Release) -> str:
    """What the sender declared, where it is a specifier at all."""
    try:
        return str(SpecifierSet(release.metadata.get("python_requires") or ""))
    except InvalidSpecifier:
        return ""


def _json(content: dict[str, Any]) -> JsonResponse:
    answer = JsonResponse({"meta": {"api-version": API_VERSION}, **content}, content_type=JSON)
    answer["Vary"] = "Accept"
    return answer


def _html(request: HttpRequest, title: str, links: str) -> HttpResponse:
    page = format_html(
        '<!doctype html>\n<meta name="pypi:repository-version" content="{}">\n<title>{}</title>\n<body>\n{}\n</body>\n',
        API_VERSION,
        title,
        links,
    )
    answer = HttpResponse(page, content_type=HTML if chosen_type(request) == HTML else f"{PLAIN}; charset=utf-8")
    answer["Vary"] = "Accept"
    return answer
