"""HTTP face of evaluations: parse, door, service, render. No rule lives here."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.core.schemas import query_parameters, read_body, read_query, render
from controlplane.evals import queries, services
from controlplane.evals.access import access_evaluation
from controlplane.evals.request import HostedRequest
from controlplane.evals.schemas import (
    CancelAnswer,
    DeletedAnswer,
    EvaluationAnswer,
    EvaluationPage,
    EvaluationsQuery,
    FinalizeEvaluation,
    HostedAnswer,
    LogsAnswer,
    PushEvaluation,
    PushSamples,
    SamplesAnswer,
    SamplesPushed,
    SamplesQuery,
    UpdateEvaluation,
    render_evaluation,
)


class EvaluationsView(APIView):
    scope = "evals"

    @extend_schema(operation_id="list_evaluations", parameters=query_parameters(EvaluationsQuery), responses=EvaluationPage)
    def get(self, request: Request) -> Response:
        query = read_query(request, EvaluationsQuery)
        rows = queries.evaluations_of(request.user, name=query.environment_name, environment_id=query.environment_id)
        page = [render_evaluation(row) for row in rows[query.skip : query.skip + query.limit]]
        return render(EvaluationPage(evaluations=page, total=rows.count(), skip=query.skip, limit=query.limit))

    @extend_schema(operation_id="push_evaluation", request=PushEvaluation, responses=EvaluationAnswer)
    def post(self, request: Request) -> Response:
        body = read_body(request, PushEvaluation)
        return render(render_evaluation(services.push_evaluation(actor=request.user, body=body)))


class EvaluationView(APIView):
    scope = "evals"

    @extend_schema(operation_id="get_evaluation", responses=EvaluationAnswer)
    def get(self, request: Request, evaluation_id: str) -> Response:
        return render(render_evaluation(access_evaluation(request.user, evaluation_id)))

    @extend_schema(operation_id="update_evaluation", request=UpdateEvaluation, responses=EvaluationAnswer)
    def put(self, request: Request, evaluation_id: str) -> Response:
        body = read_body(request, UpdateEvaluation)
        found = services.update_evaluation(actor=request.user, evaluation_id=evaluation_id, body=body)
        return render(render_evaluation(found))

    @extend_schema(operation_id="delete_evaluation", responses=DeletedAnswer)
    def delete(self, request: Request, evaluation_id: str) -> Response:
        services.delete_evaluation(actor=request.user, evaluation_id=evaluation_id)
        return render(DeletedAnswer())


class SamplesView(APIView):
    scope = "evals"

    @extend_schema(operation_id="list_samples", parameters=query_parameters(SamplesQuery), responses=SamplesAnswer)
    def get(self, request: Request, evaluation_id: str) -> Response:
        query, evaluation = read_query(request, SamplesQuery), access_evaluation(request.user, evaluation_id)
        samples = queries.samples_page(evaluation, offset=(query.page - 1) * query.limit, limit=query.limit)
        return render(
            SamplesAnswer(
                evaluation_id=evaluation.id,
                samples=samples,
                total=evaluation.samples_count,
                page=query.page,
                limit=query.limit,
                total_pages=max(1, -(-evaluation.samples_count // query.limit)),
            )
        )

    @extend_schema(operation_id="push_samples", request=PushSamples, responses=SamplesPushed)
    def post(self, request: Request, evaluation_id: str) -> Response:
        samples = read_body(request, PushSamples).samples
        found = services.push_samples(actor=request.user, evaluation_id=evaluation_id, samples=samples)
        return render(SamplesPushed(evaluation_id=found.id, samples_pushed=len(samples), status=found.status))


class FinalizeView(APIView):
    scope = "evals"

    @extend_schema(operation_id="finalize_evaluation", request=FinalizeEvaluation, responses=EvaluationAnswer)
    def post(self, request: Request, evaluation_id: str) -> Response:
        metrics = read_body(request, FinalizeEvaluation).metrics
        found = services.finalize_evaluation(actor=request.user, evaluation_id=evaluation_id, metrics=metrics)
        return render(render_evaluation(found))


class HostedView(APIView):
    scope = "evals"

    @extend_schema(operation_id="start_hosted_evaluation", request=HostedRequest, responses=HostedAnswer)
    def post(self, request: Request) -> Response:
        made = services.start_hosted(actor=request.user, request=read_body(request, HostedRequest))
        ids = [evaluation.id for evaluation in made]
        return render(HostedAnswer(evaluation_id=ids[0], evaluation_ids=ids, status=made[0].status))


class HostedLogsView(APIView):
    scope = "evals"

    @extend_schema(operation_id="read_evaluation_log", responses=LogsAnswer)
    def get(self, request: Request, evaluation_id: str) -> Response:
        evaluation = access_evaluation(request.user, evaluation_id)
        return render(LogsAnswer(logs=queries.log_text(evaluation), evaluation_id=evaluation.id))


class HostedCancelView(APIView):
    scope = "evals"

    @extend_schema(operation_id="cancel_hosted_evaluation", request=None, responses=CancelAnswer)
    def patch(self, request: Request, evaluation_id: str) -> Response:
        found = services.cancel_hosted(actor=request.user, evaluation_id=evaluation_id)
        message = f"the evaluation is {found.status.lower()}" if found.finished_at else "the evaluation is being stopped"
        return render(CancelAnswer(success=True, message=message, evaluation_id=found.id, status=found.status))
