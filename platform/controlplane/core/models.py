"""Base classes of every table, and the tables of the core itself. Knows columns and constraints; does no I/O."""

from typing import TYPE_CHECKING, Any

from django.db import models

from controlplane.core.clock import DatabaseNow
from trainer.contracts.base import new_id

PUBLIC_ID_LENGTH = 25

if TYPE_CHECKING:
    from controlplane.teams.models import Team


class PublicIdModel(models.Model):
    """A row that the outside knows by a random public id."""

    id = models.CharField(primary_key=True, max_length=PUBLIC_ID_LENGTH, default=new_id, editable=False)
    created_at = models.DateTimeField(db_default=DatabaseNow(), editable=False)

    class Meta:
        abstract = True


class TenantModel(PublicIdModel):
    """A row of one team. Its migration enables row-level security (`core.rls.EnableRowSecurity`); a test checks that."""

    team: "models.ForeignKey[Team, Team]" = models.ForeignKey("teams.Team", on_delete=models.PROTECT, related_name="+")
    team_id: str

    class Meta:
        abstract = True


class OutboxMessage(models.Model):
    """A consequence of a committed change: run `task` with `payload`. `key` makes a second emit of the same fact a no-op."""

    id = models.BigAutoField(primary_key=True)
    key = models.CharField(max_length=255, unique=True)
    task = models.CharField(max_length=128)
    payload: "models.JSONField[Any, Any]" = models.JSONField(default=dict)
    created_at = models.DateTimeField(db_default=DatabaseNow())
    due_at = models.DateTimeField(db_default=DatabaseNow())
    attempts_count = models.PositiveIntegerField(default=0)
    done_at = models.DateTimeField(null=True)
    failed_at = models.DateTimeField(null=True)
    last_error = models.TextField(default="")

    class Meta:
        indexes = (
            models.Index(
                fields=["due_at", "id"], name="outbox_pending", condition=models.Q(done_at__isnull=True, failed_at__isnull=True)
            ),
        )


class RateBucket(models.Model):
    """A bucket of tokens (`throttling`): what it held when it was last looked at, and whether that request got one. Unlogged, and
    without an index on what every request changes, so that a change stays within its page."""

    name = models.CharField(primary_key=True, max_length=255)
    tokens = models.FloatField()
    burst = models.PositiveIntegerField()
    window_s = models.PositiveIntegerField()
    is_granted = models.BooleanField()
    filled_at = models.DateTimeField()


class IdempotentAnswer(TenantModel):
    """The answer to a POST that came with an `Idempotency-Key`, for those who send it again (`idempotency`)."""

    operation = models.CharField(max_length=128)
    key = models.CharField(max_length=255)
    request_sha256 = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField()
    sealed_body = models.TextField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["team", "operation", "key"], name="idempotent_answer_once"),)
        indexes = (models.Index(fields=["created_at"], name="idempotent_answer_oldest"),)


class ServiceLife(models.Model):
    """One process of the control plane, or the database itself, from its start to its end. `mark` tells it from a later one with
    the same pid. A life that ended without being asked to is lost; `told_at` is when those whom it may have touched were told."""

    id = models.BigAutoField(primary_key=True)
    component = models.CharField(max_length=16)
    host = models.CharField(max_length=255)
    pid = models.PositiveIntegerField()
    mark = models.BigIntegerField()
    started_at = models.DateTimeField(db_default=DatabaseNow())
    ended_at = models.DateTimeField(null=True)
    is_lost = models.BooleanField(default=False)
    told_at = models.DateTimeField(null=True)

    class Meta:
        indexes = (
            models.Index(fields=["component", "host"], name="service_life_open", condition=models.Q(ended_at__isnull=True)),
            models.Index(fields=["id"], name="service_life_untold", condition=models.Q(is_lost=True, told_at__isnull=True)),
        )
