"""Which environments stand on which: a release that wants a file of another environment's index depends on that environment.

Read off the wheel's own requirements, and off the lock of its check, which holds those of its requirements too. A bare name never
counts: it means the public index (`hub.index`). Readers get what they may see.
"""

import re
from collections.abc import Iterable

from django.conf import settings
from django.db.models import Q, QuerySet

from controlplane.core.tenancy import acting_as_system
from controlplane.hub import access
from controlplane.hub.models import Environment, Release
from controlplane.hub.names import normalize
from controlplane.hub.schemas import Related, RelatedRow
from controlplane.teams.actors import Actor

SHOWN_MAX = 100


def required_environments(requirements: Iterable[str], lock: str = "") -> list[str]:
    """Ids of the environments whose index these requirements and this lock name."""
    text, root = "\n".join([*requirements, lock]), re.escape(settings.PUBLIC_ORIGIN)
    named = {(owner, normalize(name)) for owner, name in re.findall(rf"{root}/hub/([^/\s]+)/([^/\s]+)/packages/", text)}
    wanted = Q(pk__in=[])
    for owner, name in sorted(named):
        wanted |= Q(team__slug=owner, normalized_name=name)
    with acting_as_system():
        return sorted(Environment.objects.filter(wanted).values_list("id", flat=True)) if named else []


def related_to(actor: Actor | None, environment: Environment) -> Related:
    """Environments that the reader may see: those with a release that depends on this one, and its forks."""
    with acting_as_system():
        visible = access.visible_environments(actor).exclude(id=environment.id)
        standing = Release.objects.filter(depends_on__contains=[environment.id], yanked_at=None, quarantined_at=None)
        return Related(
            dependants=_rows(visible.filter(id__in=standing.values("environment_id"))),
            forks=_rows(visible.filter(forked_from__environment=environment)),
        )


def _rows(found: QuerySet[Environment]) -> list[RelatedRow]:
    page = list(found.order_by("-updated_at", "id")[:SHOWN_MAX])
    releases = access.releases_by_environment(page)
    latest = [(environment, access.latest_of(releases[environment.id])) for environment in page]
    return [
        RelatedRow(
            environment=environment.slug,
            description=environment.description,
            version=release.version if release else None,
            badge=release.badge if release else None,
        )
        for environment, release in latest
    ]
