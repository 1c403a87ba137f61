"""The doors of the hub: the only place that finds an environment, a release or an upload by name or id, always for an actor.

Foreign and absent look the same. An actor reads what is public and what any of their teams owns, and writes what any of their
teams owns: the public client names no team in most hub calls. So each door looks as the system, with its own condition; the
writes that follow run as the owning team (`services`). `None` as actor is a visitor.
"""

from collections.abc import Sequence

from django.db.models import Q, QuerySet
from packaging.version import InvalidVersion, Version

from controlplane.core.clock import DatabaseNow
from controlplane.core.errors import NotFound
from controlplane.core.tenancy import acting_as_system
from controlplane.hub import errors
from controlplane.hub.index_tokens import digest_of_token
from controlplane.hub.models import Badge, Collaborator, Environment, IndexToken, Release, Upload, UploadKind, Visibility
from controlplane.hub.names import normalize, owners_look_alike, skeleton
from controlplane.teams.access import memberships_of
from controlplane.teams.actors import Actor
from controlplane.teams.models import Team, User

LATEST = "latest"


def team_ids_of(actor: Actor | None) -> list[str]:
    return [membership.team_id for membership in memberships_of(actor.user)] if actor else []


def visible_environments(actor: Actor | None, *, mine_only: bool = False, personal_only: bool = False) -> QuerySet[Environment]:
    """Unevaluated: read it within `acting_as_system`. An actor's own are those of their teams, or of the personal one alone, and
    those that they collaborate on."""
    mine = Q(team_id__in=team_ids_of(actor)) | Q(id__in=_shared_with(actor))
    if personal_only and actor:
        mine = Q(team_id=actor.user.personal_team.id)
    shown = mine if mine_only else mine | Q(visibility=Visibility.PUBLIC)
    return Environment.objects.filter(shown, deleted_at__isnull=True).select_related("team").defer("search")


def _shared_with(actor: Actor | None) -> QuerySet[Collaborator]:
    user = actor.user if actor else None
    return Collaborator.objects.filter(user=user).values("environment_id")  # type: ignore[return-value]


def environment_by_name(actor: Actor | None, owner: str, name: str) -> Environment:
    with acting_as_system():
        found = visible_environments(actor).filter(team__slug=owner, normalized_name=normalize(name)).first()
    if found is None:
        raise errors.no_environment(f"{owner}/{name}")
    return found


def environment_by_id(actor: Actor | None, environment_id: str) -> Environment:
    with acting_as_system():
        found = visible_environments(actor).filter(id=environment_id).first()
    if found is None:
        raise errors.no_environment(environment_id)
    return found


def owned_environment(actor: Actor, environment_id: str) -> Environment:
    """One that a team of the actor owns."""
    with acting_as_system():
        found = visible_environments(actor).filter(id=environment_id, team_id__in=team_ids_of(actor)).first()
    if found is None:
        raise errors.no_environment(environment_id)
    return found


def writable_environment(actor: Actor, environment_id: str) -> Environment:
    """One that the actor may push to: a team of theirs owns it, or invited them."""
    with acting_as_system():
        found = visible_environments(actor, mine_only=True).filter(id=environment_id).first()
    if found is None:
        raise errors.no_environment(environment_id)
    return found


def writable_environment_by_name(actor: Actor, owner: str, name: str) -> Environment:
    return writable_environment(actor, environment_by_name(actor, owner, name).id)


def collaborators_of(environment: Environment) -> list[Collaborator]:
    with acting_as_system():
        return list(environment.collaborators.select_related("user__personal_team").order_by("created_at", "id"))


def user_by_public_name(name: str) -> User:
    """Whose personal team has that name. Public names are everybody's to know."""
    with acting_as_system():
        team = Team.objects.filter(slug=name, personal_of__isnull=False).select_related("personal_of").first()
    if team is None or team.personal_of is None:
        raise NotFound(f"There is no user '{name}'.", hint="A user's name is that of their personal team.")
    return team.personal_of


def owned_environment_by_name(actor: Actor, owner: str, name: str) -> Environment:
    return owned_environment(actor, environment_by_name(actor, owner, name).id)


def owning_team(actor: Actor, slug: str) -> Team:
    """A team of the actor, by its public name."""
    for membership in memberships_of(actor.user):
        if membership.team.slug == slug:
            return membership.team
    raise NotFound(f"There is no team '{slug}'.", hint="`prime teams list` shows yours.")


def lookalike_of(team: Team, name: str, *, as_public: bool) -> str | None:
    """`owner/name` of an environment that a reader could take for `team/name`: another one of the team's, or, for one that is to
    be public, somebody else's public one whose owner looks the same. Nobody learns of a private one."""
    with acting_as_system():
        alike = Environment.objects.filter(skeleton=skeleton(name), deleted_at__isnull=True)
        others = alike.exclude(team=team, normalized_name=normalize(name)).values_list(
            "team_id", "team__slug", "name", "visibility"
        )
        for team_id, slug, taken, visibility in others:
            both_public = as_public and visibility == Visibility.PUBLIC
            if team_id == team.id or (both_public and owners_look_alike(team.slug, slug)):
                return f"{slug}/{taken}"
    return None


def owned_upload(actor: Actor, environment_id: str, upload_id: str, kind: UploadKind) -> Upload:
    environment = writable_environment(actor, environment_id)
    with acting_as_system():
        rows = Upload.objects.filter(id=upload_id, environment=environment, kind=kind)
        found = rows.select_related("created_by").first()
    if found is None:
        raise errors.no_upload(upload_id)
    found.environment = environment
    return found


def releases_of(environment: Environment) -> list[Release]:
    """Every release, the highest version first, without its long texts."""
    return releases_by_environment([environment])[environment.id]


def releases_by_environment(environments: Sequence[Environment]) -> dict[str, list[Release]]:
    """`releases_of` for a page of environments, by their ids."""
    found: dict[str, list[Release]] = {environment.id: [] for environment in environments}
    with acting_as_system():
        rows = (
            Release.objects.filter(environment__in=environments)
            .select_related("environment__team")
            .defer("log", "readme", "environment__search")
        )
        for release in rows:
            found[release.environment_id].append(release)
    for releases in found.values():
        releases.sort(key=lambda release: Version(release.version), reverse=True)
    return found


def release_ids(actor: Actor | None, slug: str) -> list[str]:
    """Of every release of `owner/name`, for whoever may see it."""
    owner, _, name = slug.partition("/")
    return [release.id for release in releases_of(environment_by_name(actor, owner, name))]


def latest_release(environment: Environment) -> Release | None:
    return latest_of(releases_of(environment))


def latest_of(releases: list[Release]) -> Release | None:
    """The highest final version that was not withdrawn, or the highest pre-release where there is no final one. Where all that
    is left is in quarantine, one of these, so that whoever asks is told. Highest first."""
    kept = [release for release in releases if release.yanked_at is None]
    offered = [release for release in kept if release.quarantined_at is None] or kept
    final = [release for release in offered if not Version(release.version).is_prerelease]
    return next(iter(final or offered), None)


def release_of(environment: Environment, version: str) -> Release:
    """By version, by content hash, or `latest`. A withdrawn release is still found by what names it exactly."""
    found = latest_release(environment) if version == LATEST else _exact_release(environment, version)
    if found is None:
        raise errors.no_release(environment.slug, version)
    return release_by_id(found.id)


def _exact_release(environment: Environment, version: str) -> Release | None:
    for release in releases_of(environment):
        if version in (release.version, release.content_hash) or _same_version(release.version, version):
            return release
    return None


def _same_version(one: str, other: str) -> bool:
    try:
        return Version(one) == Version(other)
    except InvalidVersion:
        return False


def release_by_name(actor: Actor | None, owner: str, name: str, version: str) -> Release:
    return release_of(environment_by_name(actor, owner, name), version)


def resolve_release(actor: Actor, reference: str, *, forced: bool = False) -> Release:
    """`[owner/]name[@version]`, or an environment's id in place of the name, to start work on. A name alone is the acting
    team's. Raises NotFound naming it, Quarantined, and RedBadge for one that failed its check, unless `forced`."""
    name, _, version = reference.partition("@")
    owner, slash, short = name.partition("/")
    environment = environment_by_name(actor, owner, short) if slash else _own_environment(actor, name)
    release = release_of(environment, version or LATEST)
    refuse_quarantined(actor, release)
    if release.badge == Badge.RED and not forced:
        raise errors.red_badge(environment.slug, release.version, release.verdict)
    return release


def quarantine_reason_for(actor: Actor | None, release: Release) -> str:
    """The operator's words; '' for whoever does not belong to the owning team."""
    return release.quarantine_reason if release.team_id in team_ids_of(actor) else ""


def refuse_quarantined(actor: Actor | None, release: Release) -> None:
    """Raises Quarantined where an operator has withdrawn the release: its code leaves us for nobody."""
    if release.quarantined_at is not None:
        raise errors.quarantined(release.environment.slug, release.version, quarantine_reason_for(actor, release))


def installable_release(actor: Actor | None, owner: str, name: str, version: str) -> Release:
    """A release whose code may be fetched."""
    release = release_by_name(actor, owner, name, version)
    refuse_quarantined(actor, release)
    return release


def _own_environment(actor: Actor, reference: str) -> Environment:
    """By id, or by the name that the acting team gave it."""
    with acting_as_system():
        found = visible_environments(actor).filter(id=reference).first()
        named = Q(team_id=actor.team_id, normalized_name=normalize(reference))
        found = found or visible_environments(actor, mine_only=True).filter(named).first()
    if found is None:
        raise errors.no_environment(reference)
    return found


def release_by_id(release_id: str) -> Release:
    """For workers and leased attempts, which act on what was resolved for an actor before."""
    with acting_as_system():
        rows = Release.objects.filter(id=release_id).select_related("environment__team").defer("environment__search")
        found = rows.first()
    if found is None:
        raise NotFound(f"There is no release '{release_id}'.")
    return found


def releases_for_operator(reference: str) -> list[Release]:
    """What `owner/name[@version]` names for whoever runs this installation: one release, or all of an environment."""
    slug, _, version = reference.partition("@")
    owner, _, name = slug.partition("/")
    with acting_as_system():
        found = Environment.objects.filter(team__slug=owner, normalized_name=normalize(name)).select_related("team").first()
    if found is None:
        raise errors.no_environment(slug)
    return [release_of(found, version)] if version else releases_of(found)


def lock_release(release_id: str) -> Release | None:
    """The row, locked for the transaction, as the scope of the caller sees it."""
    return Release.objects.select_for_update(of=("self",)).select_related("environment__team").filter(id=release_id).first()


def environment_by_index_token(token: str) -> Environment:
    """The private environment whose index `token` opens, while its holder may still see it. Raises NotFound."""
    with acting_as_system():
        rows = IndexToken.objects.filter(token_sha256=digest_of_token(token), expires_at__gt=DatabaseNow())
        live = rows.filter(Q(key=None) | Q(key__revoked_at=None), environment__deleted_at=None)
        found = live.select_related("environment__team", "created_by").first()
        if found is not None and _may_still_read(found):
            return found.environment
    raise NotFound("There is no such index.", hint="Its address ends after an hour: `prime env info` gives a new one.")


def _may_still_read(token: IndexToken) -> bool:
    if token.environment.team_id in {membership.team_id for membership in memberships_of(token.created_by)}:
        return True
    return token.environment.collaborators.filter(user=token.created_by).exists()


def wheel_of(environment: Environment, filename: str) -> Release:
    """A wheel of an environment that the caller may read."""
    for release in releases_of(environment):
        if release.wheel_filename == filename:
            refuse_quarantined(None, release)
            return release
    raise NotFound(f"There is no file '{filename}'.")


def wheel_to_stand_on(environment: Environment, owner: str, name: str, filename: str, *, sender: User | None) -> Release | None:
    """The release of `owner/name` with that wheel, where one of `environment` may know of it: it is public or the same team's. To
    `sender`, if given, the team's own are known as a member alone: a collaborator could read them by standing on them."""
    known = Q(visibility=Visibility.PUBLIC)
    if sender is None or environment.team_id in {row.team_id for row in memberships_of(sender)}:
        known |= Q(team_id=environment.team_id)
    with acting_as_system():
        there = Environment.objects.filter(known, team__slug=owner, normalized_name=normalize(name), deleted_at__isnull=True)
        rows = Release.objects.filter(environment__in=there, wheel_filename=filename).select_related("environment__team")
        return rows.defer("log", "readme", "environment__search").first()


def hidden_dependency_of(environment: Environment) -> Environment | None:
    """One that releases of `environment` stand on, and that not everybody sees."""
    with acting_as_system():
        standing = Release.objects.filter(environment=environment, yanked_at=None).values_list("depends_on", flat=True)
        needed = {environment_id for ids in standing for environment_id in ids}
        hidden = Environment.objects.filter(id__in=needed, visibility=Visibility.PRIVATE).select_related("team")
        return hidden.first()


def owner_names_of(actor: Actor) -> list[str]:
    return [membership.team.slug for membership in memberships_of(actor.user)]
