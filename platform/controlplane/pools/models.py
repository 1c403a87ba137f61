"""Pools (where the shared machines are) and leases (who may work on what, until when).

Knows columns and the constraints that make a lease exclusive. Refuses to know what is leased: a subject is a kind and an id.
"""

from django.db import models
from django.db.models import Q

from controlplane.core.models import PublicIdModel, TenantModel

SUBJECT_KINDS = [("run", "run"), ("eval", "evaluation"), ("release", "release check"), ("export", "export")]
NAME_LENGTH_MAX = 64


class Engine(models.TextChoices):
    """What samples tokens in a pool."""

    TORCH = "torch"
    VLLM = "vllm"


class Pool(PublicIdModel):
    """One trainer, its engines and the folder that they share, for one base model. Operators make pools; teams only use them."""

    name = models.CharField(max_length=NAME_LENGTH_MAX, unique=True)
    base_model = models.CharField(max_length=127)
    trainer_url = models.CharField(max_length=255)
    pool_url = models.CharField(max_length=255)
    inference_urls = models.JSONField(default=list)
    artifact_root = models.CharField(max_length=1024)
    engine = models.CharField(max_length=16, choices=Engine, default=Engine.TORCH)
    rank_max = models.PositiveIntegerField(null=True)
    """Where the machines are set below the base model's own limit; so for the context."""
    context_tokens = models.PositiveIntegerField(null=True)
    target_modules = models.JSONField(default=list)
    """Modules that the engines take adapters on; empty for all of the base model's."""
    run_slots = models.PositiveIntegerField(default=8)
    """Runs that train at once: never more than the trainer has slots."""
    eval_slots = models.PositiveIntegerField(default=4)

    class Meta:
        db_table = "pools_pool"

    def __str__(self) -> str:
        return self.name


class Lease(TenantModel):
    """The right to work on one subject, held by one process. Ends by release or expiry, and never lives again.

    `fencing_token` grows with every lease of a subject; the attempt token is known to its holder alone and stored hashed.
    Times are the database's.
    """

    subject_kind = models.CharField(max_length=8, choices=SUBJECT_KINDS)
    subject_id = models.CharField(max_length=25)
    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, null=True, related_name="leases")
    attempt = models.PositiveIntegerField()
    segment = models.PositiveIntegerField(default=1)
    fencing_token = models.PositiveBigIntegerField()
    token_sha256 = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()
    heartbeat_at = models.DateTimeField(null=True)
    released_at = models.DateTimeField(null=True)
    end_reason = models.CharField(max_length=32, blank=True, default="")
    holder_host = models.CharField(max_length=255, blank=True, default="")
    holder_pid = models.PositiveIntegerField(null=True)
    holder_started = models.PositiveBigIntegerField(null=True)
    """Start time of the process in the kernel's ticks, so that a re-used pid is never taken for the holder."""
    phase = models.CharField(max_length=200, blank=True, default="")
    inflight = models.PositiveIntegerField(default=0)

    class Meta:
        db_table = "pools_lease"
        constraints = [
            models.UniqueConstraint(
                fields=["subject_kind", "subject_id"], condition=Q(released_at__isnull=True), name="lease_one_live_per_subject"
            ),
            models.UniqueConstraint(fields=["subject_kind", "subject_id", "fencing_token"], name="lease_fencing_token_once"),
        ]
        indexes = [models.Index(fields=["expires_at"], condition=Q(released_at__isnull=True), name="lease_live_by_expiry")]

    def __str__(self) -> str:
        return f"{self.subject_kind} {self.subject_id} attempt {self.attempt}"
