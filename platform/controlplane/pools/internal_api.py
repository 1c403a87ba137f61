"""HTTP of leased processes: `/internal/v1`, spoken by orchestrators alone (trainer/contracts/internal.py has the table).

Knows how to parse, prove the lease and answer. Refuses to know what a run, an evaluation or a release does with a report: the
subject decides. Each write happens in the transaction that proves the lease, so that a fenced holder writes nothing.
"""

from typing import Any

from django.conf import settings
from rest_framework.authentication import BaseAuthentication
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.billing.services import record_usage
from controlplane.core.errors import Unauthorized
from controlplane.core.schemas import read_body
from controlplane.core.tenancy import acting_as_system
from controlplane.core.text import ProcessJSONParser
from controlplane.pools.access import attempt_of
from controlplane.pools.bodies import store_body
from controlplane.pools.models import Lease
from controlplane.pools.services import extend_lease, proven, release_lease
from trainer.contracts.internal import (
    CheckpointReport,
    EventBatch,
    Finish,
    Heartbeat,
    RolloutBatch,
    UsageBatch,
    VersionReport,
)


class AttemptAuthentication(BaseAuthentication):
    """`request.user` is the lease, `request.auth` the token. `proven` looks again, inside the transaction that writes."""

    def authenticate(self, request: Request) -> tuple[Lease, str]:
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise Unauthorized("an attempt token is needed")
        return attempt_of(token.strip()), token.strip()


class AttemptView(APIView):
    """Base of the internal views: no sessions, no keys, only the attempt token."""

    authentication_classes = [AttemptAuthentication]
    permission_classes: list[Any] = []
    throttle_classes: list[Any] = []
    parser_classes = [ProcessJSONParser]
    renderer_classes = [JSONRenderer]

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Any:
        with acting_as_system():
            return super().dispatch(request, *args, **kwargs)


class AttemptSpecView(AttemptView):
    def get(self, request: Request) -> Response:
        with proven(request.auth) as held:
            spec = held.subject.attempt_spec(held.row, held.lease)
        return Response(spec.model_copy(update={"sandbox_backend": settings.SANDBOX_BACKEND}).model_dump(mode="json"))


class HeartbeatView(AttemptView):
    def post(self, request: Request) -> Response:
        beat = read_body(request, Heartbeat)
        with proven(request.auth) as held:
            extend_lease(held.lease, beat)
            return Response(held.subject.on_heartbeat(held.row, held.lease, beat).model_dump(mode="json"))


class EventsView(AttemptView):
    def post(self, request: Request) -> Response:
        batch = read_body(request, EventBatch)
        with proven(request.auth) as held:
            return Response({"accepted": held.subject.on_events(held.row, held.lease, batch)})


class UsageView(AttemptView):
    def post(self, request: Request) -> Response:
        batch = read_body(request, UsageBatch)
        with proven(request.auth) as held:
            receipt = record_usage(
                team_id=held.lease.team_id,
                subject_kind=held.lease.subject_kind,
                subject_id=held.lease.subject_id,
                segment=held.lease.segment,
                model=held.subject.billed_model(held.row),
                events=batch.events,
            )
            return Response(receipt.model_dump(mode="json"))


class RolloutsView(AttemptView):
    def post(self, request: Request) -> Response:
        batch = read_body(request, RolloutBatch)
        # The object store is a network service, so the body goes there before the transaction; a key made of its own digest
        # makes a report that is refused afterwards harmless.
        body = store_body(request.user, batch)
        with proven(request.auth) as held:
            return Response({"accepted": held.subject.on_rollouts(held.row, held.lease, batch, body)})


class VersionsView(AttemptView):
    def post(self, request: Request) -> Response:
        report = read_body(request, VersionReport)
        with proven(request.auth) as held:
            held.subject.on_version(held.row, held.lease, report)
        return Response(status=204)


class CheckpointsView(AttemptView):
    def post(self, request: Request) -> Response:
        report = read_body(request, CheckpointReport)
        with proven(request.auth) as held:
            held.subject.on_checkpoint(held.row, held.lease, report)
        return Response(status=204)


class FinishView(AttemptView):
    def post(self, request: Request) -> Response:
        report = read_body(request, Finish)
        with proven(request.auth) as held:
            held.subject.on_finish(held.row, held.lease, report)
            release_lease(held.lease, reason=report.outcome)
        return Response(status=204)
