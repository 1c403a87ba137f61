"""HTTP of reports from elsewhere: parse, door, service, render. No rule lives here."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.schemas import read_body, render
from controlplane.core.views import ApiView
from controlplane.ingest import services
from controlplane.ingest.schemas import (
    ConfirmRequest,
    ExternalRun,
    FinalizeRequest,
    MetricsAccepted,
    MetricsReport,
    PresignAnswer,
    PresignRequest,
    SamplesAccepted,
    SignedUpload,
    StatusRequest,
)
from controlplane.runs.schemas import RunEnvelope, render_run
from controlplane.teams.actors import actor_in


class ExternalRunsView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="external_runs_create", request=ExternalRun, responses={201: RunEnvelope})
    def post(self, request: Request) -> Response:
        """Make a run that is trained elsewhere. It is RUNNING at once and costs nothing."""
        run = services.register_run(actor_in(request), read_body(request, ExternalRun))
        return render(RunEnvelope(run=render_run(run)), status=201)


class StatusView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="external_runs_status_set", request=StatusRequest, responses=RunEnvelope)
    def put(self, request: Request, run_id: str) -> Response:
        """End an external run. One that has ended already stays as it is."""
        run = services.set_status(actor_in(request), run_id, read_body(request, StatusRequest))
        return render(RunEnvelope(run=render_run(run)))


class MetricsView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="external_runs_metrics_create", request=MetricsReport, responses=MetricsAccepted)
    def post(self, request: Request) -> Response:
        """Add numbers to a step of an external run. Several reports of one step are one row."""
        report = read_body(request, MetricsReport)
        services.record_metrics(actor_in(request), report)
        return render(MetricsAccepted(accepted=len(report.numbers()), left_out=report.left_out()))


class PresignView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="external_runs_samples_presign", request=PresignRequest, responses=PresignAnswer)
    def post(self, request: Request) -> Response:
        """A signed address to PUT a Parquet file of one step's rollouts to."""
        key, url = services.presign_samples(actor_in(request), read_body(request, PresignRequest))
        return render(PresignAnswer(data=SignedUpload(presignedUrl=url, s3Key=key)))


class ConfirmView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="external_runs_samples_confirm", request=ConfirmRequest, responses=SamplesAccepted)
    def post(self, request: Request) -> Response:
        """Read an uploaded file of rollouts into the run. Files of one step add up; a sample that comes again replaces itself."""
        asked = read_body(request, ConfirmRequest)
        accepted = services.confirm_samples(actor_in(request), asked)
        return render(SamplesAccepted(run_id=asked.run_id, step=asked.step, accepted=accepted))


class FinalizeView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="external_runs_finalize", request=FinalizeRequest, responses=RunEnvelope)
    def post(self, request: Request) -> Response:
        """End an external run with its trainer's summary."""
        run = services.finalize_run(actor_in(request), read_body(request, FinalizeRequest))
        return render(RunEnvelope(run=render_run(run)))
