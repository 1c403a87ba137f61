"""Writes to the hub. One transaction each, no network; a release's check goes to the outbox.

An upload is judged before anything of it is kept: a refused one leaves neither row nor object behind.
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from tempfile import SpooledTemporaryFile
from typing import Any, BinaryIO, cast

from django.db import IntegrityError, transaction
from packaging.version import InvalidVersion, Version

from controlplane.audit.services import record_by_system
from controlplane.core import outbox
from controlplane.core.clock import DatabaseNow, now
from controlplane.core.errors import Invalid, NotUploaded
from controlplane.core.objects import MissingObject, content_key, store
from controlplane.core.tenancy import acting_as_system, acting_for
from controlplane.hub import access, errors
from controlplane.hub.archives import ArchiveRefused, SourceFacts, WheelFacts, inspect_source, inspect_wheel
from controlplane.hub.archives.members import ARCHIVE_MAX_BYTES
from controlplane.hub.dependencies import DependencyRefused, dependencies
from controlplane.hub.index_tokens import EXPIRES_AFTER, digest_of_token, new_token
from controlplane.hub.models import SETTLED_BADGES, Badge, Environment, IndexToken, Release, Upload, UploadKind, Visibility
from controlplane.hub.names import normalize, refusal
from controlplane.hub.schemas import DeclareSource, DeclareUpload
from controlplane.hub.search import document_of
from controlplane.secrets.services import forget_environment
from controlplane.teams.actors import Actor
from controlplane.teams.models import Team
from controlplane.webhooks.models import EventType
from controlplane.webhooks.publishing import page_url, publish
from trainer.contracts.base import new_id
from trainer.contracts.internal import ReleaseVerdict
from trainer.contracts.packages import allows_prereleases

UPLOAD_EXPIRES_S = 3600
CHECK_TASK = "releases.start_check"
SPOOL_MAX_BYTES = 8 * 2**20
LOG_MAX_CHARACTERS = 200_000
CLIENT_MAX_CHARACTERS = 200
TOLD_OF_SOURCE = ("commit", "commit_is_clean", "repository")
"""What a sender's metadata says of where the source came from: provenance, not description."""


def get_or_create_environment(team: Team, name: str, visibility: Visibility | None) -> tuple[Environment, bool]:
    """The team's environment of that name, made if need be; a visibility that is given is set. A deleted one comes back, with
    its old versions still taken."""
    with acting_for(team.id), transaction.atomic():
        wanted = {"team": team, "normalized_name": normalize(name)}
        environment = Environment.objects.select_for_update().filter(**wanted).first()
        created = environment is None or environment.deleted_at is not None
        becomes_public = visibility == Visibility.PUBLIC and (environment is None or environment.visibility != visibility)
        _check_name(team, name, is_new=environment is None, becomes_public=becomes_public)
        if becomes_public and environment and (hidden := access.hidden_dependency_of(environment)):
            raise errors.stands_on_private(environment.name, hidden.slug)
        if environment is None:
            environment, _ = Environment.objects.get_or_create(**wanted, defaults={"name": name})
        if visibility or environment.deleted_at:
            environment.visibility = visibility or environment.visibility
            environment.deleted_at = None
            environment.save(update_fields=["visibility", "deleted_at"])
        environment.team = team
        return environment, created


def _check_name(team: Team, name: str, *, is_new: bool, becomes_public: bool) -> None:
    """A name is judged when it is first taken, and once more when everybody gets to see it."""
    if is_new and (reason := refusal(name)):
        raise Invalid(("body", "name"), reason)
    if (is_new or becomes_public) and (other := access.lookalike_of(team, name, as_public=becomes_public)):
        raise errors.name_looks_taken(name, other)


def declare_upload(actor: Actor, environment: Environment, body: DeclareUpload) -> tuple[Upload, str | None]:
    """Announce an artefact. Returns it with a signed address to PUT it to, or None when it is stored and verified already."""
    _check_version(body.semantic_version)
    kind = UploadKind.SOURCE if isinstance(body, DeclareSource) else UploadKind.WHEEL
    _refuse_published(environment, body.semantic_version, body.content_hash)
    _discard_abandoned(environment)
    with acting_for(environment.team_id), transaction.atomic():
        if kind == UploadKind.WHEEL and (stored := _verified_wheel(environment, body)):
            return stored, None
        upload_id = new_id()
        upload = Upload.objects.create(
            id=upload_id,
            team_id=environment.team_id,
            environment=environment,
            created_by=actor.user,
            kind=kind,
            version=body.semantic_version,
            content_hash=body.content_hash,
            filename=body.filename,
            sha256=body.sha256,
            size_bytes=body.size,
            metadata=body.metadata.model_dump(),
            runtime_hint=body.runtime_hint or "",
            object_key=f"hub/uploads/{upload_id}",
        )
    size_max = body.size if body.size is not None else ARCHIVE_MAX_BYTES
    return upload, store().signed_put_url(upload.object_key, UPLOAD_EXPIRES_S, size_max)


def _check_version(version: str) -> None:
    try:
        Version(version)
    except InvalidVersion:
        raise Invalid(("body", "semantic_version"), f"'{version}' is not a version, such as 0.1.0") from None


def _refuse_published(environment: Environment, version: str, content_hash: str) -> None:
    for release in access.releases_of(environment):
        if release.content_hash == content_hash:
            raise errors.content_taken(content_hash, release.version)
        if Version(release.version) == Version(version):
            raise errors.version_taken(release.version)


def _discard_abandoned(environment: Environment) -> None:
    """Whoever pushes again clears away what earlier pushes announced and never finished: their addresses have ended."""
    with acting_for(environment.team_id):
        old = Upload.objects.filter(environment=environment, verified_at__isnull=True)
        abandoned = list(old.filter(created_at__lt=DatabaseNow() - timedelta(seconds=UPLOAD_EXPIRES_S)))
    for upload in abandoned:
        _discard(upload)


def _verified_wheel(environment: Environment, body: DeclareUpload) -> Upload | None:
    same = {"version": body.semantic_version, "content_hash": body.content_hash, "sha256": body.sha256, "filename": body.filename}
    verified = Upload.objects.filter(environment=environment, kind=UploadKind.WHEEL, verified_at__isnull=False, **same)
    return verified.first()


def finalize_wheel(upload: Upload) -> Upload:
    """Judge an uploaded wheel and keep it. Twice is once."""
    if upload.verified_at is not None:
        return upload
    with _judged(upload) as stream:
        facts = inspect_wheel(
            stream, upload.size_bytes or 0, name=upload.environment.name, version=upload.version, filename=upload.filename
        )
        _dependencies(upload, facts.requires_dist)
    _keep(upload, "hub/wheels", ".whl", facts)
    return upload


def finalize_source(upload: Upload, *, client: str = "") -> Release:
    """Judge an uploaded source archive; with the wheel of the same content it becomes a release, whose check is asked for.
    `client` is how the sender's program calls itself."""
    wheel = _wheel_for(upload)
    with _judged(upload) as stream:
        facts = inspect_source(
            stream,
            upload.size_bytes or 0,
            name=upload.environment.name,
            version=upload.version,
            declared_hash=upload.content_hash,
        )
        depends_on = _dependencies(upload, wheel.metadata.get("requires_dist", []))
    _keep(upload, "hub/sources", ".tar.gz", facts)
    return _publish(upload, wheel, facts, client, depends_on)


def _dependencies(upload: Upload, requires_dist: list[str]) -> list[str]:
    """Ids of the environments that a release with these requirements stands on. Raises ArchiveRefused naming one."""
    try:
        found = dependencies(upload.environment, requires_dist, sender=upload.created_by)
    except DependencyRefused as error:
        raise ArchiveRefused("METADATA", f"it {error}") from error
    return sorted(release.environment_id for release in found)


def _wheel_for(upload: Upload) -> Upload:
    with acting_for(upload.team_id):
        wheels = Upload.objects.filter(
            environment_id=upload.environment_id,
            kind=UploadKind.WHEEL,
            content_hash=upload.content_hash,
            version=upload.version,
            verified_at__isnull=False,
        )
        wheel = wheels.order_by("-created_at").first()
    if wheel is None:
        raise Invalid(("body", "content_hash"), "no finalized wheel has this content hash and version; send the wheel first")
    return wheel


@contextmanager
def _judged(upload: Upload) -> Iterator[BinaryIO]:
    """The uploaded object as a stream, its digest and size compared with the declared ones. Whatever is refused inside is
    removed, row and object, and answered with 422."""
    try:
        stored = store().stat(upload.object_key)
        if stored is None:
            raise NotUploaded
        if stored.sha256 != upload.sha256:
            raise ArchiveRefused("", f"the upload has sha256 {stored.sha256}, the sender said {upload.sha256}")
        if upload.size_bytes is not None and stored.size_bytes != upload.size_bytes:
            raise ArchiveRefused("", f"the upload has {stored.size_bytes} bytes, the sender said {upload.size_bytes}")
        upload.size_bytes = stored.size_bytes
        with store().open(upload.object_key) as stream, _seekable(stream) as whole:
            yield whole
    except ArchiveRefused as error:
        _discard(upload)
        raise errors.refused_archive(error) from error


@contextmanager
def _seekable(stream: BinaryIO) -> Iterator[BinaryIO]:
    """A zip archive is read from its end; an object store's stream only goes forward, so that it is spooled first."""
    if stream.seekable():
        yield stream
        return
    with SpooledTemporaryFile(max_size=SPOOL_MAX_BYTES) as spool:
        shutil.copyfileobj(stream, spool)
        spool.seek(0)
        yield cast(BinaryIO, spool)


def _discard(upload: Upload) -> None:
    store().delete(upload.object_key)
    with acting_for(upload.team_id):
        Upload.objects.filter(id=upload.id).delete()


def _keep(upload: Upload, folder: str, suffix: str, facts: WheelFacts | SourceFacts) -> None:
    """Move the object under its digest, where no signed address can reach it any more, and note that it was verified. The digest
    is compared once more: the address may have been written to since the object was judged."""
    key = content_key(folder, upload.sha256, suffix)
    try:
        with store().open(upload.object_key) as stream:
            kept = store().put(key, stream)
    except MissingObject as error:
        raise errors.no_upload(upload.id) from error
    if kept.sha256 != upload.sha256:
        store().delete(key)
        _discard(upload)
        raise errors.refused_archive(ArchiveRefused("", "the upload was changed while it was checked"))
    store().delete(upload.object_key)
    upload.object_key = key
    if isinstance(facts, WheelFacts):
        # What the wheel says it wants is what installers go by, whatever its sender told us of it.
        upload.module, upload.metadata = facts.module, upload.metadata | {"requires_dist": facts.requires_dist}
    with acting_for(upload.team_id):
        upload.verified_at = DatabaseNow()
        upload.save(update_fields=["object_key", "module", "metadata", "size_bytes", "verified_at"])


def _publish(source: Upload, wheel: Upload, facts: SourceFacts, client: str, depends_on: list[str]) -> Release:
    environment = source.environment
    told = {name: source.metadata[name] for name in TOLD_OF_SOURCE if source.metadata.get(name) is not None}
    metadata = {name: value for name, value in source.metadata.items() if name not in TOLD_OF_SOURCE}
    try:
        with acting_for(source.team_id), transaction.atomic():
            release = Release.objects.create(
                team_id=source.team_id,
                environment=environment,
                created_by_id=source.created_by_id,
                version=source.version,
                content_hash=source.content_hash,
                folder_hash=facts.folder_hash,
                allows_prereleases=allows_prereleases(facts.pyproject),
                depends_on=depends_on,
                module=wheel.module,
                provenance={"client": client[:CLIENT_MAX_CHARACTERS], **told},
                metadata=metadata | {"requires_dist": wheel.metadata.get("requires_dist", [])},
                readme=facts.readme,
                runtime_hint=source.runtime_hint,
                wheel_filename=wheel.filename,
                wheel_sha256=wheel.sha256,
                wheel_size_bytes=wheel.size_bytes,
                wheel_key=wheel.object_key,
                source_filename=source.filename,
                source_sha256=source.sha256,
                source_size_bytes=source.size_bytes,
                source_key=source.object_key,
            )
            describe(environment, source.metadata, facts.readme)
            outbox.emit(task=CHECK_TASK, key=f"release:{release.id}:check", payload={"release_id": release.id})
            return release
    except IntegrityError as error:
        # Two pushes of one version finished together; the constraint let one of them through.
        raise errors.version_taken(source.version) from error


def describe(environment: Environment, metadata: dict[str, Any], readme: str) -> None:
    """Its newest release says what an environment is for, and by which words it is found."""
    environment.description = metadata.get("description") or ""
    environment.tags = metadata.get("tags") or []
    environment.search = document_of(environment.name, environment.tags, environment.description, readme)
    environment.updated_at = DatabaseNow()
    environment.save(update_fields=["description", "tags", "search", "updated_at"])


def yank_release(release: Release) -> None:
    """Withdraw a release: `latest` passes it over, what names it exactly still finds it. Twice is once."""
    with acting_for(release.team_id):
        Release.objects.filter(id=release.id, yanked_at__isnull=True).update(yanked_at=DatabaseNow())


def issue_index_token(actor: Actor, environment: Environment) -> str:
    """A token for the index of a private environment: it reads, this one package, for an hour, and ends with the key or the
    membership of whoever asked. Those that have ended are cleared away."""
    token = new_token()
    with acting_for(environment.team_id), transaction.atomic():
        IndexToken.objects.filter(environment=environment, expires_at__lt=DatabaseNow()).delete()
        IndexToken.objects.create(
            team_id=environment.team_id,
            environment=environment,
            created_by=actor.user,
            key=actor.key,
            token_sha256=digest_of_token(token),
            expires_at=now() + EXPIRES_AFTER,
        )
    return token


def quarantine(release: Release, reason: str) -> None:
    """An operator's act: from now on nobody installs or starts the release, not even by its exact name. Its owner reads why."""
    with acting_as_system(), transaction.atomic():
        Release.objects.filter(id=release.id).update(quarantined_at=DatabaseNow(), quarantine_reason=reason)
        _record_by_operator(release, "release.quarantined", {"version": release.version, "reason": reason})


def lift_quarantine(release: Release) -> None:
    with acting_as_system(), transaction.atomic():
        Release.objects.filter(id=release.id).update(quarantined_at=None, quarantine_reason="")
        _record_by_operator(release, "release.quarantine_lifted", {"version": release.version})


def _record_by_operator(release: Release, action: str, detail: dict[str, str]) -> None:
    record_by_system(release.team_id, action, kind="release", object_id=release.id, detail=detail)


def delete_environment(environment: Environment) -> None:
    """Hide an environment for good. Releases stay for the runs that used them, and their versions stay taken. Secrets
    and variables that any team has set for it go."""
    with acting_for(environment.team_id), transaction.atomic():
        Release.objects.filter(environment=environment, yanked_at__isnull=True).update(yanked_at=DatabaseNow())
        Environment.objects.filter(id=environment.id).update(deleted_at=DatabaseNow())
        forget_environment(environment.id)


def record_verdict(release_id: str, verdict: ReleaseVerdict) -> None:
    """What the check of a release found. A later check's verdict replaces an earlier one's."""
    found = verdict.model_dump(mode="json", exclude={"log", "requirements_lock"})
    badge = Badge.GREEN if verdict.ok else Badge.RED
    with acting_as_system(), transaction.atomic():
        Release.objects.filter(id=release_id).update(
            badge=badge,
            verdict=found,
            log=verdict.log[-LOG_MAX_CHARACTERS:],
            checked_at=DatabaseNow(),
            requirements_lock=verdict.requirements_lock,
        )
        _tell_webhooks(access.release_by_id(release_id))


def _tell_webhooks(release: Release) -> None:
    slug = release.environment.slug
    names = {"release_id": release.id, "environment": slug, "version": release.version, "badge": release.badge}
    page = page_url(f"/environments/{slug}?version={release.version}")
    checked_at = release.checked_at.isoformat() if release.checked_at else ""
    publish(release.team_id, EventType.RELEASE_CHECKED, key=f"{release.id}:{checked_at}", data=names | {"url": page})


def retry_check(release: Release) -> None:
    """Ask for another check of a release that has its verdict, for when what failed was not the package. Raises Conflict."""
    with acting_for(release.team_id), transaction.atomic():
        due = {"id": release.id, "badge__in": SETTLED_BADGES, "quarantined_at": None}
        if not Release.objects.filter(**due).update(badge=Badge.PENDING):
            raise errors.check_is_due(release.environment.slug, release.version)
        outbox.emit(task=CHECK_TASK, key=f"release:{release.id}:check:{new_id()}", payload={"release_id": release.id})


def requeue_check(release: Release) -> None:
    """Ask for another check of a release whose check was lost. Inside the transaction that took the lease back."""
    lost_checks = release.lost_checks + 1
    Release.objects.filter(id=release.id).update(badge=Badge.PENDING, lost_checks=lost_checks)
    outbox.emit(task=CHECK_TASK, key=f"release:{release.id}:check:{lost_checks}", payload={"release_id": release.id})
