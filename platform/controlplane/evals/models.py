"""Evaluations: hosted ones, which we run, and pushed ones, which somebody ran elsewhere and keeps here.

Knows columns and constraints. Refuses to know transitions (`states`), leases (`pools`) and money (`billing`, kind `eval`).
"""

from django.db import models
from django.db.models import Q

from controlplane.core.clock import DatabaseNow
from controlplane.core.models import TenantModel
from controlplane.pools.models import Pool
from trainer.contracts.events import EventKind

EXAMPLE_LENGTH_MAX = 255


class EvalStatus(models.TextChoices):
    """As spelled on the wire."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    PROCESSING = "PROCESSING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    TIMEOUT = "TIMEOUT"
    CANCELLED = "CANCELLED"


class Evaluation(TenantModel):
    """One model on one environment (hosted), or whatever a client pushed. `config` and what follows it are a hosted one's."""

    created_by = models.ForeignKey("teams.User", on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=255)
    status = models.CharField(max_length=12, choices=EvalStatus, default=EvalStatus.PENDING)
    eval_type = models.CharField(max_length=16, default="environment")
    is_hosted = models.BooleanField(default=False)
    model_name = models.CharField(max_length=255, blank=True, default="")
    group_id = models.CharField(max_length=25, blank=True, default="")
    """What was started together, to be compared: evaluations of one group carry the same id."""
    environment_ids = models.JSONField(default=list)
    environment_names = models.JSONField(default=list)
    dataset = models.CharField(max_length=255, blank=True, default="")
    framework = models.CharField(max_length=64, blank=True, default="")
    task_type = models.CharField(max_length=64, blank=True, default="")
    description = models.TextField(blank=True, default="")
    tags = models.JSONField(default=list)
    metadata = models.JSONField(default=dict)
    metrics = models.JSONField(default=dict)
    avg_score = models.FloatField(null=True)
    ci_low = models.FloatField(null=True)
    ci_high = models.FloatField(null=True)
    """The 95 % interval of `avg_score`; null below two examples."""
    is_public = models.BooleanField(default=False)
    """Its team shows it to everybody who may see its environments."""
    samples_count = models.PositiveIntegerField(default=0)
    run = models.ForeignKey("runs.Run", on_delete=models.PROTECT, null=True, related_name="+")
    error_message = models.TextField(blank=True, default="")
    error_code = models.CharField(max_length=32, blank=True, default="")
    error_detail = models.JSONField(default=dict)

    config = models.JSONField(null=True)
    """contracts.EvalConfig with every default filled in."""
    base_model = models.CharField(max_length=127, blank=True, default="")
    served_model = models.JSONField(null=True)
    """contracts.ServedModel: which weights answer, fixed when the evaluation was made."""
    seats = models.JSONField(default=dict)
    """contracts.ServedModel by agent that another model plays."""
    release_id = models.CharField(max_length=25, blank=True, default="")
    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, null=True, related_name="+")
    sealed_secrets = models.TextField(blank=True, default="")
    attempt = models.PositiveIntegerField(default=0)
    lost_attempts = models.PositiveIntegerField(default=0)
    cancel_requested_at = models.DateTimeField(null=True)
    eligible_at = models.DateTimeField(db_default=DatabaseNow())
    events_count = models.PositiveIntegerField(default=0)
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    updated_at = models.DateTimeField(db_default=DatabaseNow())
    deleted_at = models.DateTimeField(null=True)

    class Meta:
        db_table = "evals_evaluation"
        indexes = [
            models.Index(fields=["team", "-created_at"], name="evaluation_by_team"),
            models.Index(fields=["status", "eligible_at"], name="evaluation_by_status"),
            models.Index(fields=["group_id"], condition=~Q(group_id=""), name="evaluation_by_group"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.status})"


class EvaluationSample(TenantModel):
    """One sample as it was pushed, or one rollout of ours in the same shape: an open document, beside what is counted of it."""

    evaluation = models.ForeignKey(Evaluation, on_delete=models.CASCADE, related_name="samples")
    position = models.PositiveIntegerField()
    key = models.CharField(max_length=280)
    """Which sample of the evaluation it is. Sending it again changes nothing."""
    example = models.CharField(max_length=EXAMPLE_LENGTH_MAX, blank=True, default="")
    """The example it is a rollout of; empty for model calls outside any rollout."""
    rollout = models.PositiveIntegerField(default=0)
    """Counts the rollouts of an example from 0."""
    state = models.CharField(max_length=16, default="ok")
    """`ok` has a reward. Everything else is missing, and says why."""
    duration_s = models.FloatField(null=True)
    input_tokens = models.PositiveIntegerField(null=True)
    output_tokens = models.PositiveIntegerField(null=True)
    attempt = models.PositiveIntegerField(default=0)
    step = models.PositiveIntegerField(default=0)
    tag = models.CharField(max_length=64, blank=True, default="")
    """With attempt and step: which report of a holder the sample came with, so that a repeated report adds nothing."""
    reward = models.FloatField(null=True)
    body_key = models.CharField(max_length=255, blank=True, default="")
    """Where a rollout's messages are; a pushed sample carries them in `data`."""
    data = models.JSONField()

    class Meta:
        db_table = "evals_sample"
        constraints = [
            models.UniqueConstraint(fields=["evaluation", "position"], name="evaluation_sample_once"),
            models.UniqueConstraint(fields=["evaluation", "key"], name="evaluation_sample_key_once"),
        ]
        indexes = [models.Index(fields=["evaluation", "example"], name="evaluation_sample_by_example")]


class EvaluationEvent(TenantModel):
    """One line of a hosted evaluation's log. Never updated. `sequence` numbers a holder's reports inside its attempt."""

    evaluation = models.ForeignKey(Evaluation, on_delete=models.CASCADE, related_name="events")
    seq = models.PositiveIntegerField()
    attempt = models.PositiveIntegerField()
    sequence = models.PositiveBigIntegerField(null=True)
    kind = models.CharField(max_length=16, choices=[(k.value, k.value) for k in EventKind])
    at = models.DateTimeField()
    payload = models.JSONField(default=dict)

    class Meta:
        db_table = "evals_event"
        constraints = [
            models.UniqueConstraint(fields=["evaluation", "seq"], name="evaluation_event_seq_once"),
            models.UniqueConstraint(
                fields=["evaluation", "attempt", "sequence"],
                condition=Q(sequence__isnull=False),
                name="evaluation_event_report_once",
            ),
        ]
