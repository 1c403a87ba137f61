"""State of a run and its append-only history.

Knows columns and the constraints that make reports idempotent. Refuses to know transitions (`states`), leases (`pools`) and
money (`billing`, which keeps what the run caused under kind `run` and the run's id).
"""

from django.db import models
from django.db.models import Q

from controlplane.core.clock import DatabaseNow
from controlplane.core.models import TenantModel
from controlplane.pools.models import Pool
from controlplane.runs.states import RunKind
from trainer.contracts.events import EventKind, RunState


class Run(TenantModel):
    """A team's training request. `step` is the newest committed optimizer step; `segment` grows with each start and restart that
    the user asks for, so that billing tells a crash replay (free) from a restart (not)."""

    created_by = models.ForeignKey("teams.User", on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=100)
    kind = models.CharField(max_length=32, default=RunKind.SHARED.value)
    base_model = models.CharField(max_length=127)
    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, null=True, related_name="+")
    config = models.JSONField()
    """The effective configuration: contracts.RunConfig with every default filled in."""
    client_config = models.JSONField(default=dict)
    """The free table `run_config` as the sender gave it; of a run that is trained elsewhere, all that its trainer told."""
    releases = models.JSONField(default=list)
    """Release ids, one per environment and then per evaluation environment, pinned when the run was made."""
    init_from = models.CharField(max_length=1024, blank=True, default="")
    """Artifact path of the checkpoint or adapter version that a warm start begins from."""
    forked_from = models.JSONField(null=True)
    """Of a fork: {checkpoint_id, run_id, step, position} as they were; `position` is contracts.RunPosition."""
    teachers = models.JSONField(default=list)
    """contracts.ServedModel or null per environment, as resolved when the run was made; empty when nobody teaches."""
    seats = models.JSONField(default=list)
    """contracts.ServedModel by agent for each release, as resolved when the run was made; empty when the policy plays all."""
    sealed_secrets = models.TextField(blank=True, default="")
    notice = models.TextField(blank=True, default="")

    state = models.CharField(max_length=12, choices=[(s.value, s.value) for s in RunState], default=RunState.QUEUED)
    stop_requested_at = models.DateTimeField(null=True)
    segment = models.PositiveIntegerField(default=1)
    attempt = models.PositiveIntegerField(default=0)
    lost_attempts = models.PositiveIntegerField(default=0)
    """Attempts that ended without a report since the last committed step."""
    step = models.PositiveIntegerField(default=0)
    queue_reason = models.CharField(max_length=255, blank=True, default="")
    eligible_at = models.DateTimeField(db_default=DatabaseNow())
    """Not leased before this moment: a run that lost its holder waits a little longer each time."""

    failure_code = models.CharField(max_length=32, blank=True, default="")
    failure_message = models.TextField(blank=True, default="")
    failure_detail = models.JSONField(default=dict)

    events_count = models.PositiveBigIntegerField(default=0)
    """Also the newest `RunEvent.seq`: handed out under the row's lock, so that order of seq is order of commit."""
    queued_at = models.DateTimeField(db_default=DatabaseNow())
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    updated_at = models.DateTimeField(db_default=DatabaseNow())
    deleted_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "runs_run"
        indexes = [
            models.Index(fields=["team", "-created_at"], name="run_by_team"),
            models.Index(fields=["state", "queued_at"], name="run_by_state"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.state})"


class RunEvent(TenantModel):
    """One line of a run's history. Never updated. `sequence` numbers a holder's reports inside its attempt; our own have none."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="events")
    seq = models.PositiveBigIntegerField()
    segment = models.PositiveIntegerField()
    attempt = models.PositiveIntegerField()
    sequence = models.PositiveBigIntegerField(null=True)
    kind = models.CharField(max_length=16, choices=[(k.value, k.value) for k in EventKind])
    step = models.PositiveIntegerField(null=True)
    at = models.DateTimeField()
    payload = models.JSONField(default=dict)

    class Meta:
        db_table = "runs_event"
        constraints = [
            models.UniqueConstraint(fields=["run", "seq"], name="run_event_seq_once"),
            models.UniqueConstraint(
                fields=["run", "attempt", "sequence"], condition=Q(sequence__isnull=False), name="run_event_report_once"
            ),
        ]
        indexes = [models.Index(fields=["run", "kind", "-seq"], name="run_event_by_kind")]


class RunMetric(TenantModel):
    """The numbers of one step as one attempt reported them. An attempt that went back to an earlier step supersedes what others
    reported beyond it: those rows stay, and the current ones have one value per step."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="metrics")
    step = models.PositiveIntegerField()
    attempt = models.PositiveIntegerField()
    segment = models.PositiveIntegerField()
    superseded_by = models.PositiveIntegerField(null=True)
    version = models.PositiveIntegerField(null=True)
    adapter_digest = models.CharField(max_length=64, blank=True, default="")
    values = models.JSONField(default=dict)
    at = models.DateTimeField()

    class Meta:
        db_table = "runs_metric"
        constraints = [
            models.UniqueConstraint(fields=["run", "step"], condition=Q(superseded_by__isnull=True), name="metric_one_per_step"),
            models.UniqueConstraint(fields=["run", "step", "attempt"], name="metric_once_per_attempt"),
        ]


class RolloutStep(TenantModel):
    """The rollouts accounted in one step under one tag (`train`, or an evaluation's): where their bodies are. A later attempt's
    report of the same step replaces the row, as it replaces the step."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="rollout_steps")
    step = models.PositiveIntegerField()
    tag = models.CharField(max_length=64)
    attempt = models.PositiveIntegerField()
    body_key = models.CharField(max_length=255)
    body_sha256 = models.CharField(max_length=64)
    size_bytes = models.PositiveBigIntegerField()
    rollouts_count = models.PositiveIntegerField()

    class Meta:
        db_table = "runs_rollout_step"
        constraints = [models.UniqueConstraint(fields=["run", "step", "tag"], name="rollout_step_once")]


class Rollout(TenantModel):
    """Summary of one rollout; `summary` is contracts.RolloutSummary. The columns beside it are what reads filter by."""

    rollout_step = models.ForeignKey(RolloutStep, on_delete=models.CASCADE, related_name="rollouts")
    position = models.PositiveIntegerField()
    state = models.CharField(max_length=16)
    reward = models.FloatField(null=True)
    advantage = models.FloatField(null=True)
    summary = models.JSONField()

    class Meta:
        db_table = "runs_rollout"
        constraints = [models.UniqueConstraint(fields=["rollout_step", "position"], name="rollout_position_once")]


class Checkpoint(TenantModel):
    """A committed checkpoint: its manifest was on disk before the trainer reported it. One that the run's plan has retired is no
    place to begin from any more; then its files go."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="checkpoints")
    step = models.PositiveIntegerField()
    path = models.CharField(max_length=1024)
    digest = models.CharField(max_length=64)
    size_bytes = models.PositiveBigIntegerField()
    position = models.JSONField(null=True)
    """contracts.RunPosition at this step; null where the holder did not tell."""
    retired_at = models.DateTimeField(null=True)
    removed_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "runs_checkpoint"
        constraints = [models.UniqueConstraint(fields=["run", "step"], name="checkpoint_once_per_step")]
