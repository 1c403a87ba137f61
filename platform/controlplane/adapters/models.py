"""State of an adapter: what it is, whether its team wants it served, and what the engines were last seen to do about it.

Knows columns and constraints. Refuses to know engines (`gateways`) and who trained it beyond the run's key.
"""

from django.db import models

from controlplane.core.clock import DatabaseNow
from controlplane.core.models import TenantModel
from controlplane.pools.models import Pool
from trainer.contracts.adapters import RANK_MAX
from trainer.contracts.names import AdapterVersionName


class DeploymentStatus(models.TextChoices):
    """As spelled on the wire. A transitional status is one that the reconciler still has to work on."""

    NOT_DEPLOYED = "NOT_DEPLOYED"
    DEPLOYING = "DEPLOYING"
    DEPLOYED = "DEPLOYED"
    UNLOADING = "UNLOADING"
    DEPLOY_FAILED = "DEPLOY_FAILED"
    UNLOAD_FAILED = "UNLOAD_FAILED"


class Adapter(TenantModel):
    """One version of a run's adapter, under its public id. Weights never change: another version is another adapter.

    `is_kept` tells the versions that the run's plan keeps deployable from those that merely existed for a few steps.
    `is_wanted` is the team's wish, `generation` counts the wishes: what the reconciler observes is only written while the wish
    that it worked for is still the newest.
    """

    run = models.ForeignKey("runs.Run", on_delete=models.PROTECT, related_name="adapters")
    run_id: str
    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, null=True, related_name="+")
    """Where it was trained: the engines that share its files."""
    version = models.PositiveIntegerField()
    step = models.PositiveIntegerField()
    base_model = models.CharField(max_length=127)
    digest = models.CharField(max_length=64)
    path = models.CharField(max_length=1024)
    """Folder of its files, relative to the pool's artifact root."""
    size_bytes = models.PositiveBigIntegerField()
    lora_rank = models.PositiveIntegerField()
    target_modules: "models.JSONField[list[str], list[str]]" = models.JSONField(default=list)
    is_kept = models.BooleanField(default=False)
    removed_at = models.DateTimeField(null=True)
    """When the files of a version that nobody could reach went (`retention`)."""

    is_wanted = models.BooleanField(default=False)
    generation = models.PositiveIntegerField(default=0)
    deployment_status = models.CharField(max_length=16, choices=DeploymentStatus, default=DeploymentStatus.NOT_DEPLOYED)
    deployment_error = models.TextField(blank=True, default="")
    deployed_digest = models.CharField(max_length=64, blank=True, default="")
    """What the engines said that they loaded."""
    deployed_at = models.DateTimeField(null=True)
    updated_at = models.DateTimeField(db_default=DatabaseNow())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "version"], name="adapter_once_per_version"),
            models.CheckConstraint(condition=models.Q(lora_rank__gte=1, lora_rank__lte=RANK_MAX), name="adapter_rank_in_range"),
        ]
        indexes = [
            models.Index(fields=["team", "-created_at"], name="adapter_newest_of_team"),
            models.Index(fields=["deployment_status"], name="adapter_by_deployment"),
        ]

    def __str__(self) -> str:
        return f"{self.engine_name} on {self.base_model}"

    @property
    def engine_name(self) -> str:
        """The immutable name under which engines load this version."""
        return str(AdapterVersionName(self.run_id, self.version))

    @property
    def served_name(self) -> str:
        """What callers put into `model`."""
        return f"{self.base_model}:{self.pk}"

    @property
    def display_name(self) -> str:
        return f"{self.run.name}@{self.step}"


class ExportState(models.TextChoices):
    QUEUED = "QUEUED"
    BUILDING = "BUILDING"
    READY = "READY"
    FAILED = "FAILED"
    EXPIRED = "EXPIRED"


LIVE_EXPORTS = (ExportState.QUEUED, ExportState.BUILDING, ExportState.READY)


class Export(TenantModel):
    """An adapter version's files for use elsewhere, in one form: kept for a while, then removed. Asking again while there is one
    finds it. `files` is a list of {name, sha256, size_bytes} and grows as they come in; complete once READY."""

    adapter = models.ForeignKey(Adapter, on_delete=models.PROTECT, related_name="exports")
    adapter_id: str
    form = models.CharField(max_length=8, choices=[("adapter", "adapter"), ("merged", "merged")])
    state = models.CharField(max_length=8, choices=ExportState, default=ExportState.QUEUED)
    error = models.TextField(blank=True, default="")
    files = models.JSONField(default=list)
    lost_attempts = models.PositiveIntegerField(default=0)
    expires_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["adapter", "form"], condition=models.Q(state__in=LIVE_EXPORTS), name="export_one_live_per_form"
            ),
        ]
        indexes = [models.Index(fields=["state", "created_at"], name="export_by_state")]

    def __str__(self) -> str:
        return f"{self.form} of {self.adapter_id} ({self.state})"
