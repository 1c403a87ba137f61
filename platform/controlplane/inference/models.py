"""The gateway's own records: one row a request, from which a bill can be recomputed. Rows are added and never changed."""

from django.db import models

from controlplane.core.models import TenantModel


class RequestStatus(models.TextChoices):
    """A failed request was ours to answer and is not billed; an aborted one is billed for what was streamed."""

    OK = "ok"
    ABORTED = "aborted"
    FAILED = "failed"


BILLED = (RequestStatus.OK, RequestStatus.ABORTED)


class InferenceRequest(TenantModel):
    """One call of the gateway that reached an engine. Its id is the sequence of its two meter events."""

    key_prefix = models.CharField(max_length=12, blank=True, default="")
    model = models.CharField(max_length=255)
    """Public name, which is also the subject that the usage is billed under."""
    base_model = models.CharField(max_length=127)
    adapter_id = models.CharField(max_length=25, blank=True, default="")
    adapter_digest = models.CharField(max_length=64, blank=True, default="")
    """What the engine said that it answered with."""
    is_stream = models.BooleanField()
    status = models.CharField(max_length=8, choices=RequestStatus)
    error_code = models.CharField(max_length=64, blank=True, default="")
    input_tokens_count = models.PositiveIntegerField()
    output_tokens_count = models.PositiveIntegerField()
    duration_s = models.FloatField()
    ttft_s = models.FloatField(null=True)
    """From the request's arrival to the first token, where the answer was streamed."""

    class Meta:
        indexes = [models.Index(fields=["team", "-created_at", "-id"], name="inferencerequest_newest")]

    def __str__(self) -> str:
        return f"{self.model} {self.status}: {self.input_tokens_count} in, {self.output_tokens_count} out"
