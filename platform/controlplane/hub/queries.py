"""Reads of the hub, as the shapes of its answers. Finds nothing by name or id: the doors (`access`) have done so.

Absolute addresses are built from the configured public origin.
"""

import tarfile
from typing import IO, Any, cast

from django.conf import settings
from django.db.models import Count, Exists, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Coalesce

from controlplane.core.errors import NotFound
from controlplane.core.objects import store
from controlplane.core.tenancy import acting_as_system
from controlplane.hub import access
from controlplane.hub.dependencies import (
    DependencyRefused,
    address_of,
    dependencies_of,
    requirement_of,
    requirements_by_address,
)
from controlplane.hub.models import SETTLED_BADGES, Badge, Environment, Release, Star, Visibility
from controlplane.hub.schemas import (
    BadgeState,
    CheckStatus,
    CollaboratorRow,
    CollaboratorRows,
    Entry,
    EnvironmentList,
    EnvironmentRow,
    EnvironmentStatus,
    Inspection,
    ListQuery,
    Owner,
    Provenance,
    ReleaseDetail,
    ReleaseName,
    Stars,
    Verdict,
    VersionRow,
    VersionRows,
)
from controlplane.hub.search import matching
from controlplane.pools.models import Lease
from controlplane.teams.actors import Actor
from trainer.contracts.rollouts import HubWheel, ReleaseSpec

WHEEL_URL_EXPIRES_S = 6 * 3600
SOURCE_URL_EXPIRES_S = 600
ACTIONS = {Badge.PENDING: "PENDING", Badge.BUILDING: "RUNNING", Badge.GREEN: "SUCCESS", Badge.RED: "FAILED"}
SORT_COLUMNS = {
    "name": ["normalized_name"],
    "created_at": ["created_at"],
    "updated_at": ["updated_at"],
    "stars": ["stars_count", "updated_at"],
    "rank": ["rank", "updated_at"],
}


def release_spec(release: Release) -> ReleaseSpec:
    """What a host needs to bring the release up in a sandbox. Addresses of wheels are signed and end; a release that is in
    quarantine, or stands on what cannot be had, has none."""
    withheld, needed = f"is in quarantine: {release.quarantine_reason}", []
    if release.quarantined_at is None:
        try:
            withheld, needed = "", dependencies_of(release)
        except DependencyRefused as error:
            withheld = str(error)
    return ReleaseSpec(
        release_id=release.id,
        environment=release.environment.slug,
        version=release.version,
        module=release.module,
        wheel_url="" if withheld else store().signed_get_url(release.wheel_key, WHEEL_URL_EXPIRES_S),
        wheel_filename=release.wheel_filename,
        wheel_sha256=release.wheel_sha256,
        requirements_lock=release.requirements_lock,
        allows_prereleases=release.allows_prereleases,
        withheld=withheld,
        hub_wheels=[_hub_wheel(one) for one in needed],
    )


def _hub_wheel(release: Release) -> HubWheel:
    return HubWheel(
        address=address_of(release),
        wheel_url=store().signed_get_url(release.wheel_key, WHEEL_URL_EXPIRES_S),
        wheel_filename=release.wheel_filename,
        wheel_sha256=release.wheel_sha256,
    )


def unsettled_releases(*, limit: int) -> list[str]:
    """Ids of releases that have no verdict and that nobody checks now, the longest waiting first. For the worker."""
    leased = Lease.objects.filter(subject_kind="release", released_at__isnull=True).values("subject_id")
    waiting = Release.objects.exclude(badge__in=SETTLED_BADGES).exclude(id__in=leased)
    return list(waiting.order_by("created_at").values_list("id", flat=True)[:limit])


def list_environments(actor: Actor | None, query: ListQuery) -> EnvironmentList:
    with acting_as_system():
        visible = access.visible_environments(actor, mine_only=query.mine_only, personal_only=not query.include_teams)
        rows = _matching(_with_stars(actor, visible), query)
        columns = SORT_COLUMNS[query.sort_by or ("rank" if query.search.strip() else "updated_at")]
        order = [f"-{column}" if query.sort_order == "desc" else column for column in columns]
        page = list(rows.order_by(*order, "id")[query.offset : query.offset + query.limit])
        releases = access.releases_by_environment(page)
        data = [_row(environment, access.latest_of(releases[environment.id])) for environment in page]
        return EnvironmentList(data=data, total_count=rows.count(), offset=query.offset, limit=query.limit)


def _matching(rows: QuerySet[Environment], query: ListQuery) -> QuerySet[Environment]:
    if query.owner:
        rows = rows.filter(team__slug=query.owner)
    if query.visibility:
        rows = rows.filter(visibility=query.visibility)
    if query.tags:
        rows = rows.filter(tags__contains=query.tags)
    if query.badge:
        newest = Release.objects.filter(environment=OuterRef("pk"), yanked_at=None, quarantined_at=None).order_by("-created_at")
        rows = rows.annotate(newest_badge=Subquery(newest.values("badge")[:1])).filter(newest_badge=query.badge)
    if query.starred_only:
        rows = rows.filter(starred=True)
    return matching(rows, query.search) if query.search.strip() else rows


def _with_stars(actor: Actor | None, rows: QuerySet[Environment]) -> QuerySet[Environment]:
    """`stars_count`, and `starred` by the reader."""
    stars = Star.objects.filter(environment=OuterRef("pk"))
    counted = stars.order_by().values("environment").annotate(count=Count("id")).values("count")
    own = Exists(stars.filter(user=actor.user)) if actor else Value(False)
    return rows.annotate(stars_count=Coalesce(Subquery(counted), 0), starred=own)


def stars_of(actor: Actor | None, environment: Environment) -> Stars:
    with acting_as_system():
        rows = Star.objects.filter(environment=environment)
        return Stars(stars=rows.count(), starred=actor is not None and rows.filter(user=actor.user).exists())


def collaborator_rows(environment: Environment) -> CollaboratorRows:
    rows = access.collaborators_of(environment)
    return CollaboratorRows(
        collaborators=[CollaboratorRow(user=row.user.personal_team.slug, invited_at=row.created_at) for row in rows]
    )


def _row(environment: Environment, latest: Release | None) -> EnvironmentRow:
    return EnvironmentRow(
        id=environment.id,
        name=environment.name,
        owner=Owner(name=environment.team.slug),
        description=environment.description,
        visibility=environment.visibility,
        tags=environment.tags,
        latest_version=latest.version if latest else None,
        badge=latest.badge if latest else None,
        stars=environment.stars_count,  # type: ignore[attr-defined]
        starred=environment.starred,  # type: ignore[attr-defined]
        created_at=environment.created_at,
        updated_at=environment.updated_at,
    )


def needs_index_token(actor: Actor | None, release: Release) -> bool:
    """Whether the reader is a program that is about to install a private release. Pages ask often and install nothing."""
    is_private = release.environment.visibility == Visibility.PRIVATE
    return is_private and release.quarantined_at is None and actor is not None and actor.key is not None


def release_detail(actor: Actor | None, release: Release, index_token: str | None) -> ReleaseDetail:
    environment = release.environment
    is_public = environment.visibility == Visibility.PUBLIC
    root = _index_root(environment, index_token) if release.quarantined_at is None and (is_public or index_token) else None
    package_url = f"{_api_url(environment)}/@{release.version}/source"
    index_url = f"{root}/simple/" if root else None
    return ReleaseDetail(
        id=environment.id,
        release_id=release.id,
        name=environment.name,
        owner=Owner(name=environment.team.slug),
        visibility=environment.visibility,
        description=environment.description,
        semantic_version=release.version,
        content_hash=release.content_hash,
        sha256=release.source_sha256,
        latest_version=_compared_name(access.latest_release(environment)),
        metadata=release.metadata,
        wheel_url=f"{root}/packages/{release.wheel_filename}" if root else None,
        simple_index_url=index_url,
        install_index_url=index_url,
        url_dependencies=list(map(str, requirements_by_address(release.metadata.get("requires_dist", [])))),
        requirement=requirement_of(release),
        package_url=package_url,
        tracked_package_url=package_url,
        allows_prereleases=release.allows_prereleases,
        badge=release.badge,
        compatibility=(release.verdict or {}).get("compatibility"),
        runtime_hint=release.runtime_hint or None,
        yanked=release.yanked_at is not None,
        quarantined=release.quarantined_at is not None,
        quarantine_reason=access.quarantine_reason_for(actor, release) or None,
        provenance=provenance_of(release),
        tags=environment.tags,
        **stars_of(actor, environment).model_dump(),
        **_relation(actor, environment),
        created_at=release.created_at,
    )


def _relation(actor: Actor | None, environment: Environment) -> dict[str, Any]:
    """What the reader may do, and what the environment was forked from and into, as far as the reader may see it."""
    with acting_as_system():
        visible = access.visible_environments(actor)
        origin = environment.forked_from
        source = visible.filter(id=origin.environment_id).first() if origin else None
        return {
            "is_owner": environment.team_id in access.team_ids_of(actor),
            "may_push": access.visible_environments(actor, mine_only=True).contains(environment),
            "forked_from": f"{source.slug}@{origin.version}" if origin and source else None,
            "forks": visible.filter(forked_from__environment=environment).count(),
        }


def provenance_of(release: Release) -> Provenance:
    with acting_as_system():
        sender = release.created_by.personal_team.slug
    return Provenance(pushed_by=sender, pushed_at=release.created_at, **{"client": "", **release.provenance})


def _index_root(environment: Environment, token: str | None) -> str:
    """Where installers find the index and its wheels, without sending credentials."""
    return f"{settings.PUBLIC_ORIGIN}/hub/{f'-/{token}' if token else environment.slug}"


def source_url(release: Release) -> str:
    return store().signed_get_url(release.source_key, SOURCE_URL_EXPIRES_S)


def _api_url(environment: Environment) -> str:
    return f"{settings.PUBLIC_ORIGIN}/api/v1/environmentshub/{environment.slug}"


def _release_name(release: Release | None) -> ReleaseName | None:
    if release is None:
        return None
    return ReleaseName(semantic_version=release.version, content_hash=release.content_hash, created_at=release.created_at)


def _compared_name(release: Release | None) -> ReleaseName | None:
    """The name under which the public client compares a folder with the release: it does not push by the hash it compares."""
    name = _release_name(release)
    return name.model_copy(update={"content_hash": release.folder_hash}) if name and release and release.folder_hash else name


def environment_status(environment: Environment) -> EnvironmentStatus:
    latest = access.latest_release(environment)
    return EnvironmentStatus(
        name=environment.name,
        description=environment.description,
        visibility=environment.visibility,
        latest_version=_release_name(latest),
        action=CheckStatus.model_validate({"status": ACTIONS[Badge(latest.badge)]}) if latest else None,
        badge=latest.badge if latest else None,
    )


def version_rows(environment: Environment) -> VersionRows:
    return VersionRows(
        versions=[
            VersionRow(
                version=release.version,
                created_at=release.created_at,
                sha256=release.content_hash,
                size=2,
                wheel_size_bytes=release.wheel_size_bytes,
                badge=release.badge,
                yanked=release.yanked_at is not None,
                quarantined=release.quarantined_at is not None,
                release_id=release.id,
            )
            for release in access.releases_of(environment)
        ]
    )


def badge_state(release: Release) -> BadgeState:
    return BadgeState(
        environment=release.environment.slug,
        version=release.version,
        badge=release.badge,
        verdict=Verdict.model_validate(release.verdict) if release.verdict else None,
        requirements_lock=release.requirements_lock,
        checked_at=release.checked_at,
    )


def inspect_release(release: Release, path: str, max_bytes: int) -> Inspection:
    """A folder's entries or a file's text, read from the verified source archive. Raises NotFound naming the path."""
    wanted = path.strip("/")
    files: dict[str, int] = {}
    with store().open(release.source_key) as stream, tarfile.open(fileobj=stream, mode="r|gz") as archive:
        for member in archive:
            if member.isfile() and member.name == wanted:
                return _file(release, member, cast(IO[bytes], archive.extractfile(member)), max_bytes)
            if member.isfile():
                files[member.name] = member.size
    entries = _entries(files, wanted)
    if not entries:
        raise NotFound(f"There is no '{path}' in {release.environment.slug}@{release.version}.")
    return Inspection(kind="directory", path=wanted, version_id=release.id, entries=entries)


def _file(release: Release, member: tarfile.TarInfo, content: IO[bytes], max_bytes: int) -> Inspection:
    text = content.read(max_bytes).decode("utf-8", errors="replace")
    name = member.name.rpartition("/")[2]
    return Inspection(
        kind="file",
        path=member.name,
        version_id=release.id,
        entry=Entry(name=name, path=member.name, is_directory=False, size=member.size),
        content=text,
        truncated=member.size > max_bytes,
        total_bytes=member.size,
    )


def _entries(files: dict[str, int], folder: str) -> list[Entry]:
    """What lies directly in `folder`, folders first."""
    prefix = f"{folder}/" if folder else ""
    found: dict[str, Entry] = {}
    for path, size_bytes in files.items():
        if not path.startswith(prefix):
            continue
        name, slash, _ = path[len(prefix) :].partition("/")
        found[name] = Entry(name=name, path=prefix + name, is_directory=bool(slash), size=None if slash else size_bytes)
    return sorted(found.values(), key=lambda entry: (not entry.is_directory, entry.name))
