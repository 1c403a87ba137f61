"""State of the hub: environments, uploads on their way, releases. Knows columns and constraints; does no I/O.

A release row exists once both artefacts have been verified, and its content never changes afterwards: only the verdict on it
(`badge`, `requirements_lock`) and whether it was withdrawn, by its owner (`yanked_at`) or an operator (`quarantined_at`), do.
"""

from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.db import models

from controlplane.core.clock import DatabaseNow
from controlplane.core.models import TenantModel
from controlplane.hub.names import normalize, skeleton

NAME_LENGTH_MAX = 100
VERSION_LENGTH_MAX = 64
DIGEST_LENGTH = 64
QUARANTINE_REASON_LENGTH_MAX = 1000


class Visibility(models.TextChoices):
    """Who may read: everybody, or the members of the owning team."""

    PUBLIC = "PUBLIC"
    PRIVATE = "PRIVATE"


class Badge(models.TextChoices):
    """What the sandboxed check of a release has found so far."""

    PENDING = "PENDING"
    BUILDING = "BUILDING"
    GREEN = "GREEN"
    RED = "RED"


SETTLED_BADGES = frozenset({Badge.GREEN, Badge.RED})


class UploadKind(models.TextChoices):
    WHEEL = "wheel"
    SOURCE = "source"


class Environment(TenantModel):
    """`owner/name`. The name stays its team's after a deletion, so that nobody can publish other content under an old version."""

    name = models.CharField(max_length=NAME_LENGTH_MAX)
    normalized_name = models.CharField(max_length=NAME_LENGTH_MAX)
    skeleton = models.CharField(max_length=NAME_LENGTH_MAX)
    """What look-alikes of the name have in common with it."""
    description = models.TextField(default="", blank=True)
    tags = ArrayField(models.CharField(max_length=64), default=list)
    visibility = models.CharField(max_length=8, choices=Visibility.choices, default=Visibility.PRIVATE)
    forked_from = models.ForeignKey("Release", null=True, on_delete=models.SET_NULL, related_name="forks")
    search = SearchVectorField(null=True)
    """Name, tags, description and README as `hub.search` weighs them."""
    updated_at = models.DateTimeField(db_default=DatabaseNow())
    deleted_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "hub_environment"
        constraints = (models.UniqueConstraint(fields=["team", "normalized_name"], name="environment_name_once"),)
        indexes = (
            models.Index(fields=["visibility", "-updated_at"], name="environment_by_update"),
            models.Index(fields=["skeleton"], name="environment_by_look"),
            GinIndex(fields=["search"], name="environment_by_words"),
        )

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.normalized_name, self.skeleton = normalize(self.name), skeleton(self.name)
        super().save(*args, **kwargs)

    @property
    def slug(self) -> str:
        return f"{self.team.slug}/{self.name}"


class Star(TenantModel):
    """A user likes an environment. The row belongs to the user's personal team; everybody sees how many there are."""

    environment = models.ForeignKey(Environment, on_delete=models.CASCADE, related_name="stars")
    user = models.ForeignKey("teams.User", on_delete=models.CASCADE, related_name="+")

    class Meta:
        db_table = "hub_star"
        constraints = (models.UniqueConstraint(fields=["environment", "user"], name="star_once"),)


class Collaborator(TenantModel):
    """A user of another team who may read an environment and push releases of it. The row belongs to the environment's team."""

    environment = models.ForeignKey(Environment, on_delete=models.CASCADE, related_name="collaborators")
    user = models.ForeignKey("teams.User", on_delete=models.CASCADE, related_name="+")

    class Meta:
        db_table = "hub_collaborator"
        constraints = (models.UniqueConstraint(fields=["environment", "user"], name="collaborator_once"),)


class Upload(TenantModel):
    """One artefact as its sender declared it. `object_key` is where the signed PUT writes; verified content moves to a
    content-addressed key, which nobody can write to any more."""

    environment = models.ForeignKey(Environment, on_delete=models.CASCADE, related_name="uploads")
    created_by = models.ForeignKey("teams.User", on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=8, choices=UploadKind.choices)
    version = models.CharField(max_length=VERSION_LENGTH_MAX)
    content_hash = models.CharField(max_length=DIGEST_LENGTH)
    filename = models.CharField(max_length=255)
    sha256 = models.CharField(max_length=DIGEST_LENGTH)
    size_bytes = models.PositiveBigIntegerField(null=True)
    metadata = models.JSONField(default=dict)
    runtime_hint = models.CharField(max_length=32, default="", blank=True)
    object_key = models.CharField(max_length=255)
    module = models.CharField(max_length=255, default="", blank=True)
    verified_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "hub_upload"
        indexes = (models.Index(fields=["environment", "content_hash", "kind"], name="upload_by_content"),)


class Release(TenantModel):
    """One immutable version of an environment."""

    environment = models.ForeignKey(Environment, on_delete=models.PROTECT, related_name="releases")
    created_by = models.ForeignKey("teams.User", on_delete=models.PROTECT, related_name="+")
    version = models.CharField(max_length=VERSION_LENGTH_MAX)
    content_hash = models.CharField(max_length=DIGEST_LENGTH)
    folder_hash = models.CharField(max_length=DIGEST_LENGTH, default="", blank=True)
    """contracts.packages.folder_hash of the same files; empty for releases that were published before it was taken."""
    module = models.CharField(max_length=255)
    """Import name of the wheel's package."""
    metadata = models.JSONField(default=dict)
    readme = models.TextField(default="", blank=True)
    runtime_hint = models.CharField(max_length=32, default="", blank=True)
    requirements_lock = models.TextField(default="", blank=True)
    """Extra dependencies as the check installed them, each with its hashes."""
    allows_prereleases = models.BooleanField(default=False)
    """contracts.packages.allows_prereleases of its source."""
    depends_on = ArrayField(models.CharField(max_length=25), default=list)
    """Ids of the environments whose wheels it wants (`hub.dependants`)."""
    provenance = models.JSONField(default=dict)
    """schemas.Provenance without who and when: what the sender's client told of itself and of the commit."""

    wheel_filename = models.CharField(max_length=255)
    wheel_sha256 = models.CharField(max_length=DIGEST_LENGTH)
    wheel_size_bytes = models.PositiveBigIntegerField()
    wheel_key = models.CharField(max_length=255)
    source_filename = models.CharField(max_length=255)
    source_sha256 = models.CharField(max_length=DIGEST_LENGTH)
    source_size_bytes = models.PositiveBigIntegerField()
    source_key = models.CharField(max_length=255)

    badge = models.CharField(max_length=8, choices=Badge.choices, default=Badge.PENDING)
    verdict = models.JSONField(null=True)
    """contracts.ReleaseVerdict without its log, once the check has ended."""
    log = models.TextField(default="", blank=True)
    checked_at = models.DateTimeField(null=True)
    lost_checks = models.PositiveIntegerField(default=0)
    yanked_at = models.DateTimeField(null=True)
    quarantined_at = models.DateTimeField(null=True)
    quarantine_reason = models.CharField(max_length=QUARANTINE_REASON_LENGTH_MAX, default="", blank=True)
    """An operator's words for the owner; nobody installs or starts a quarantined release."""

    class Meta:
        db_table = "hub_release"
        constraints = (
            models.UniqueConstraint(fields=["environment", "version"], name="release_version_once"),
            models.UniqueConstraint(fields=["environment", "content_hash"], name="release_content_once"),
        )
        indexes = (
            models.Index(fields=["badge", "created_at"], name="release_by_badge"),
            GinIndex(fields=["depends_on"], name="release_by_dependency"),
        )

    @property
    def is_for_evaluations_alone(self) -> bool:
        """Whether its check saw agents play, and none that is trained."""
        seen = (self.verdict or {}).get("compatibility") or {}
        return bool(seen.get("agents")) and not seen.get("trained_agents")

    def __str__(self) -> str:
        return f"{self.environment_id}@{self.version} ({self.badge})"


class IndexToken(TenantModel):
    """Opens the package index of one private environment to installers, which send no credentials, for as long as an install
    takes. It stands in an address; we keep its SHA-256."""

    environment = models.ForeignKey(Environment, on_delete=models.CASCADE, related_name="index_tokens")
    created_by = models.ForeignKey("teams.User", on_delete=models.CASCADE, related_name="+")
    key = models.ForeignKey("teams.ApiKey", null=True, on_delete=models.CASCADE, related_name="+")
    """The API key that asked for it: revoking one ends the other."""
    token_sha256 = models.CharField(max_length=DIGEST_LENGTH, unique=True)
    expires_at = models.DateTimeField()

    class Meta:
        db_table = "hub_index_token"
        indexes = (models.Index(fields=["environment", "expires_at"], name="index_token_by_expiry"),)
