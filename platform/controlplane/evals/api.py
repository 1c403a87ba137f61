"""HTTP face of evaluations: parse, door, service, render. No rule lives here."""

from dataclasses import asdict

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.schemas import query_parameters, read_body, read_query, render
from controlplane.core.tenancy import acting_for
from controlplane.core.views import ApiView
from controlplane.evals import queries, services
from controlplane.evals.access import access_evaluation, readable_evaluation
from controlplane.evals.request import HostedRequest
from controlplane.evals.schemas import (
    CancelAnswer,
    DeletedAnswer,
    EvaluationAnswer,
    EvaluationDetail,
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
    StatisticsQuery,
    UpdateEvaluation,
    render_evaluation,
    render_published,
)
from controlplane.evals.scores import score_statistics


class EvaluationsView(ApiView):
    scope = "evals"

    @extend_schema(operation_id="evaluations_list", parameters=query_parameters(EvaluationsQuery), responses=EvaluationPage)
    def get(self, request: Request) -> Response:
        """The evaluations of the team, newest first."""
        query = read_query(request, EvaluationsQuery)
        rows = queries.evaluations_of(
            request.user, name=query.environment_name, environment_id=query.environment_id, group_id=query.group_id
        )
        page = [render_evaluation(row) for row in rows[query.skip : query.skip + query.limit]]
        return render(EvaluationPage(evaluations=page, total=rows.count(), skip=query.skip, limit=query.limit))

    @extend_schema(operation_id="evaluations_create", request=PushEvaluation, responses=EvaluationAnswer)
    def post(self, request: Request) -> Response:
        """Open an evaluation that was run elsewhere; samples follow, then `finalize`."""
        body = read_body(request, PushEvaluation)
        return render(render_evaluation(services.push_evaluation(actor=request.user, body=body)))


class EvaluationView(ApiView):
    scope = "evals"

    @extend_schema(operation_id="evaluations_get", parameters=query_parameters(StatisticsQuery), responses=EvaluationDetail)
    def get(self, request: Request, evaluation_id: str) -> Response:
        """One evaluation, with the mean of its rewards, how sure that is, and how often examples are solved."""
        query, (evaluation, is_own) = read_query(request, StatisticsQuery), readable_evaluation(request.user, evaluation_id)
        with acting_for(evaluation.team_id):
            statistics = score_statistics(evaluation, threshold=query.pass_threshold)
        shown = render_evaluation(evaluation) if is_own else render_published(evaluation)
        found = {"statistics": asdict(statistics) if statistics else None, "is_own": is_own}
        return render(EvaluationDetail.model_validate(shown.model_dump() | found))

    @extend_schema(operation_id="evaluations_update", request=UpdateEvaluation, responses=EvaluationAnswer)
    def put(self, request: Request, evaluation_id: str) -> Response:
        """Change what is said about an evaluation."""
        body = read_body(request, UpdateEvaluation)
        found = services.update_evaluation(actor=request.user, evaluation_id=evaluation_id, body=body)
        return render(render_evaluation(found))

    @extend_schema(operation_id="evaluations_delete", responses={200: DeletedAnswer})
    def delete(self, request: Request, evaluation_id: str) -> Response:
        """Take an evaluation out of sight. Its bill stays."""
        services.delete_evaluation(actor=request.user, evaluation_id=evaluation_id)
        return render(DeletedAnswer())


class SamplesView(ApiView):
    scope = "evals"

    @extend_schema(operation_id="evaluations_samples_list", parameters=query_parameters(SamplesQuery), responses=SamplesAnswer)
    def get(self, request: Request, evaluation_id: str) -> Response:
        """The samples of an evaluation, in order; only those with a reward within bounds where bounds are given."""
        query, (evaluation, _) = read_query(request, SamplesQuery), readable_evaluation(request.user, evaluation_id)
        rows = queries.samples_of(evaluation, min_reward=query.min_reward, max_reward=query.max_reward)
        with acting_for(evaluation.team_id):
            samples = queries.samples_page(rows, offset=(query.page - 1) * query.limit, limit=query.limit)
            total = rows.count()
        return render(
            SamplesAnswer(
                evaluation_id=evaluation.id,
                samples=samples,
                total=total,
                page=query.page,
                limit=query.limit,
                total_pages=max(1, -(-total // query.limit)),
            )
        )

    @extend_schema(operation_id="evaluations_samples_create", request=PushSamples, responses=SamplesPushed)
    def post(self, request: Request, evaluation_id: str) -> Response:
        """Add samples to a pushed evaluation."""
        samples = read_body(request, PushSamples).samples
        found = services.push_samples(actor=request.user, evaluation_id=evaluation_id, samples=samples)
        return render(SamplesPushed(evaluation_id=found.id, samples_pushed=len(samples), status=found.status))


class FinalizeView(ApiView):
    scope = "evals"

    @extend_schema(operation_id="evaluations_finalize", request=FinalizeEvaluation, responses=EvaluationAnswer)
    def post(self, request: Request, evaluation_id: str) -> Response:
        """Close a pushed evaluation."""
        metrics = read_body(request, FinalizeEvaluation).metrics
        found = services.finalize_evaluation(actor=request.user, evaluation_id=evaluation_id, metrics=metrics)
        return render(render_evaluation(found))


class HostedView(ApiView):
    scope = "evals"

    @extend_schema(operation_id="hosted_evaluations_create", request=HostedRequest, responses=HostedAnswer)
    def post(self, request: Request) -> Response:
        """Evaluate one model or several on one or more environments here."""
        made = services.start_hosted(actor=request.user, request=read_body(request, HostedRequest))
        ids, group_id = [evaluation.id for evaluation in made], made[0].group_id or None
        return render(HostedAnswer(evaluation_id=ids[0], evaluation_ids=ids, group_id=group_id, status=made[0].status))


class HostedLogsView(ApiView):
    scope = "evals"

    @extend_schema(operation_id="hosted_evaluations_logs_get", responses=LogsAnswer)
    def get(self, request: Request, evaluation_id: str) -> Response:
        """The log of a hosted evaluation as JSON lines."""
        evaluation = access_evaluation(request.user, evaluation_id)
        return render(LogsAnswer(logs=queries.log_text(evaluation), evaluation_id=evaluation.id))


class HostedResumeView(ApiView):
    scope = "evals"

    @extend_schema(operation_id="hosted_evaluations_resume", request=None, responses=EvaluationAnswer)
    def patch(self, request: Request, evaluation_id: str) -> Response:
        """Let a hosted evaluation that failed, was cancelled or ran out of time go on with the rollouts that it lacks."""
        return render(render_evaluation(services.resume_hosted(actor=request.user, evaluation_id=evaluation_id)))


class HostedCancelView(ApiView):
    scope = "evals"

    @extend_schema(operation_id="hosted_evaluations_cancel", request=None, responses=CancelAnswer)
    def patch(self, request: Request, evaluation_id: str) -> Response:
        """Stop a hosted evaluation."""
        found = services.cancel_hosted(actor=request.user, evaluation_id=evaluation_id)
        message = f"the evaluation is {found.status.lower()}" if found.finished_at else "the evaluation is being stopped"
        return render(CancelAnswer(success=True, message=message, evaluation_id=found.id, status=found.status))
