"""What a release stands on: wheels of other environments, required by their address in this hub's own index (ADR 10).

Knows requirement lines and who may stand on what. Refuses to know addresses elsewhere, which the check refuses, and how hosts
install. Each address holds a digest, so that nothing here can lead in a circle: a wheel would have to hold its own.
"""

import re
from collections.abc import Iterable

from django.conf import settings
from packaging.requirements import Requirement

from controlplane.hub import access, errors
from controlplane.hub.archives.members import ARCHIVE_MAX_BYTES
from controlplane.hub.models import Environment, Release, Visibility
from controlplane.hub.names import normalize
from controlplane.teams.actors import Actor
from controlplane.teams.models import User
from trainer.contracts.package_interfaces import holding_requirements
from trainer.contracts.rollouts import HUB_WHEELS_MAX


class DependencyRefused(Exception):
    """The text, behind a release's name, says which requirement cannot be had, and the way out."""

    def __init__(self, requirement: Requirement, reason: str) -> None:
        super().__init__(f"requires '{requirement}': {reason}")


def address_of(release: Release) -> str:
    """Where its wheel lies in the index, with its digest. A private one's opens to nobody, and names it all the same."""
    root = f"{settings.PUBLIC_ORIGIN}/hub/{release.environment.slug}/packages"
    return f"{root}/{release.wheel_filename}#sha256={release.wheel_sha256}"


def requirement_of(release: Release) -> str:
    """The line by which another environment depends on exactly this release."""
    return f"{release.environment.normalized_name} @ {address_of(release)}"


def requirements_by_address(requires_dist: Iterable[str]) -> list[Requirement]:
    return [requirement for requirement in holding_requirements(requires_dist) if requirement.url]


def dependencies_of(release: Release) -> list[Release]:
    return dependencies(release.environment, release.metadata.get("requires_dist", []))


def dependencies(environment: Environment, requires_dist: Iterable[str], *, sender: User | None = None) -> list[Release]:
    """The releases that one of `environment` stands on, and those that these stand on. `sender` is given at a push: whoever is
    no member of the team can name public ones alone. Raises DependencyRefused."""
    found: dict[str, Release] = {}
    waiting = _of_the_hub(requires_dist)
    while waiting:
        requirement = waiting.pop(0)
        release = _release_for(environment, requirement, sender)
        known = found.setdefault(release.environment.normalized_name, release)
        if known.id != release.id:
            raise DependencyRefused(
                requirement, f"so is {known.environment.slug}@{known.version}, and one name means one release"
            )
        if known is release:
            waiting += _of_the_hub(release.metadata.get("requires_dist", []))
        if len(found) > HUB_WHEELS_MAX or sum(one.wheel_size_bytes for one in found.values()) > ARCHIVE_MAX_BYTES:
            most = f"{HUB_WHEELS_MAX} others and {ARCHIVE_MAX_BYTES >> 20} MiB of them"
            raise DependencyRefused(requirement, f"a release stands on at most {most}, counting what these stand on")
    return list(found.values())


def _of_the_hub(requires_dist: Iterable[str]) -> list[Requirement]:
    root = f"{settings.PUBLIC_ORIGIN}/hub/"
    return [requirement for requirement in requirements_by_address(requires_dist) if str(requirement.url).startswith(root)]


def _release_for(environment: Environment, requirement: Requirement, sender: User | None) -> Release:
    place = re.fullmatch(r"([^/]+)/([^/]+)/packages/([^/#]+)(?:#.*)?", str(requirement.url).partition("/hub/")[2])
    release = access.wheel_to_stand_on(environment, *place.groups(), sender=sender) if place else None
    if release is None:
        raise DependencyRefused(
            requirement, "the hub has no such wheel, or none that this team may see; `prime env info` has the line"
        )
    if refusal := _refusal(environment, requirement, release):
        raise DependencyRefused(requirement, refusal)
    return release


def _refusal(environment: Environment, requirement: Requirement, release: Release) -> str:
    """Why nothing of `environment` can stand on `release` by this requirement; '' where it can."""
    other = release.environment
    if requirement.url != address_of(release) or normalize(requirement.name) != other.normalized_name or requirement.extras:
        return f"it must read '{requirement_of(release)}'"
    if other.normalized_name == environment.normalized_name:
        return "it has the name of the environment itself, and one name means one release"
    if environment.visibility == Visibility.PUBLIC and other.visibility != Visibility.PUBLIC:
        return f"{other.slug} is private, so that others could not install what is public; publish that one first"
    if release.quarantined_at is not None:
        return f"{other.slug}@{release.version} is in quarantine; require another release of it"
    return ""


def startable_release(actor: Actor, reference: str, *, forced: bool = False) -> Release:
    """`access.resolve_release`, and everything that it stands on can be had. Raises Conflict, forced or not, where not."""
    release = access.resolve_release(actor, reference, forced=forced)
    try:
        dependencies_of(release)
    except DependencyRefused as error:
        raise errors.unmet_dependency(release.environment.slug, release.version, str(error)) from error
    return release
