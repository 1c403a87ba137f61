"""Writes of the gateway: one short transaction a request, with its row and its two meter events together."""

from dataclasses import dataclass

from django.db import transaction

from controlplane.billing.services import record_usage
from controlplane.core import clock
from controlplane.core.tenancy import acting_for
from controlplane.inference.access import Route
from controlplane.inference.models import BILLED, InferenceRequest, RequestStatus
from controlplane.inference.tally import Tally
from trainer.contracts.events import Meter
from trainer.contracts.internal import UsageIn

SUBJECT_KIND = "inference"
SEGMENT = 1
"""Requests are never restarted by a user, so one segment holds them all."""


@dataclass(frozen=True)
class Outcome:
    """How one request ended."""

    request_id: str
    is_stream: bool
    status: RequestStatus
    error_code: str
    duration_s: float
    ttft_s: float | None


def record_request(route: Route, outcome: Outcome, tally: Tally) -> None:
    """Record the request and, unless we failed it, bill it under its public model name. A second call changes nothing."""
    with acting_for(route.team_id), transaction.atomic():
        InferenceRequest.objects.bulk_create([_row(route, outcome, tally)], ignore_conflicts=True)
        if outcome.status in BILLED:
            record_usage(
                team_id=route.team_id,
                subject_kind=SUBJECT_KIND,
                subject_id=route.public_name,
                segment=SEGMENT,
                model=route.base_model,
                events=_usage(outcome.request_id, tally),
            )


def _usage(request_id: str, tally: Tally) -> list[UsageIn]:
    at = clock.now()
    return [
        UsageIn(meter=Meter.INFERENCE_INPUT_TOKENS, sequence=request_id, quantity=tally.input_tokens_count, at=at),
        UsageIn(meter=Meter.INFERENCE_OUTPUT_TOKENS, sequence=request_id, quantity=tally.output_tokens_count, at=at),
    ]


def _row(route: Route, outcome: Outcome, tally: Tally) -> InferenceRequest:
    return InferenceRequest(
        id=outcome.request_id,
        team_id=route.team_id,
        key_prefix=route.key_prefix,
        model=route.public_name,
        base_model=route.base_model,
        adapter_id=route.adapter_id,
        adapter_digest=tally.digest,
        is_stream=outcome.is_stream,
        status=outcome.status,
        error_code=outcome.error_code,
        input_tokens_count=tally.input_tokens_count,
        output_tokens_count=tally.output_tokens_count,
        duration_s=outcome.duration_s,
        ttft_s=outcome.ttft_s,
    )
