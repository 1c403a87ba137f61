"""Which environments stand on which: those with a release that requires a wheel of the other (`dependencies`, of any depth).

A bare name never counts: it means the public index (`hub.index`). Readers get what they may see.
"""

from django.db.models import QuerySet

from controlplane.core.tenancy import acting_as_system
from controlplane.hub import access
from controlplane.hub.models import Environment, Release
from controlplane.hub.schemas import Related, RelatedRow
from controlplane.teams.actors import Actor

SHOWN_MAX = 100


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
