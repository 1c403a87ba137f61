"""HTTP face of what a run reports: log, metrics, samples, progress, distributions, checkpoints, environment servers."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.errors import NotFound
from controlplane.core.schemas import query_parameters, read_query, render
from controlplane.core.views import ApiView
from controlplane.pools.access import live_lease
from controlplane.runs import queries
from controlplane.runs.access import access_run
from controlplane.runs.logs import LogQuery, bare_name, has_log, read_log
from controlplane.runs.schemas import (
    CheckpointsAnswer,
    DistributionAnswer,
    DistributionQuery,
    EnvServerAnswer,
    EnvServersAnswer,
    LogAnswer,
    MetricsAnswer,
    MetricsQuery,
    ProgressAnswer,
    SamplesAnswer,
    SamplesQuery,
    pages,
    render_checkpoint,
    render_metric,
)
from trainer.contracts.events import RunState

ENVIRONMENT_COMPONENT = "env-server"


class LogsView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="runs_logs_get", parameters=query_parameters(LogQuery), responses=LogAnswer)
    def get(self, request: Request, run_id: str) -> Response:
        """The log as JSON lines: its tail or, with `cursor`, what came since, and the cursor to ask with next."""
        run, query = access_run(request.user, run_id), read_query(request, LogQuery)
        if query.cursor is None and run.state in {RunState.QUEUED, RunState.PENDING} and not has_log(run):
            # The public client waits for the log on a 404 whose text says why there is none.
            raise NotFound(f"the run is {run.state.lower()}; its log is not available yet", code="log_not_started")
        page = read_log(run, query)
        return render(LogAnswer(logs="\n".join(page.lines), cursor=page.cursor))


class EnvServerLogsView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="runs_env_server_logs_get", parameters=query_parameters(LogQuery), responses=LogAnswer)
    def get(self, request: Request, run_id: str) -> Response:
        """What the process of the environment said."""
        run, query = access_run(request.user, run_id), read_query(request, LogQuery)
        page = read_log(run, query.model_copy(update={"component": ENVIRONMENT_COMPONENT}))
        return render(LogAnswer(logs="\n".join(page.lines), cursor=page.cursor))


class EnvServersView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="runs_env_servers_list", responses=EnvServersAnswer)
    def get(self, request: Request, run_id: str) -> Response:
        """One runner per environment of the run, while an attempt lives."""
        run = access_run(request.user, run_id)
        lease = live_lease("run", run.id)
        status = "Running" if lease else "Stopped"
        servers = [
            EnvServerAnswer(
                env_name=ref["name"] or bare_name(ref["id"]), env_index=index, pod_name=f"{run.id}-{index}", status=status
            )
            for index, ref in enumerate(run.config["environments"])
        ]
        return render(EnvServersAnswer(env_servers=servers))


class MetricsView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="runs_metrics_list", parameters=query_parameters(MetricsQuery), responses=MetricsAnswer)
    def get(self, request: Request, run_id: str) -> Response:
        """The numbers of each step, one row per step."""
        run, query = access_run(request.user, run_id), read_query(request, MetricsQuery)
        rows = queries.metrics_of(run, min_step=query.min_step, max_step=query.max_step)[: query.limit]
        return render(MetricsAnswer(metrics=[render_metric(row) for row in rows]))


class SamplesView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="runs_samples_list", parameters=query_parameters(SamplesQuery), responses=SamplesAnswer)
    def get(self, request: Request, run_id: str) -> Response:
        """The rollouts of a step, with their messages."""
        run, query = access_run(request.user, run_id), read_query(request, SamplesQuery)
        offset = (query.page - 1) * query.limit
        found = queries.samples_page(run, step=query.step, tag=query.tag, offset=offset, limit=query.limit)
        answer = SamplesAnswer(
            run_id=run.id,
            samples=found.samples,
            total=found.total,
            page=query.page,
            limit=query.limit,
            total_pages=pages(found.total, query.limit),
        )
        return render(answer)


class ProgressView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="runs_progress_get", responses=ProgressAnswer)
    def get(self, request: Request, run_id: str) -> Response:
        """How far the run is, and which steps can be asked for."""
        progress = queries.progress_of(access_run(request.user, run_id))
        answer = ProgressAnswer(
            latest_step=progress.latest_step,
            steps_with_samples=progress.steps_with_samples,
            steps_with_distributions=progress.steps_with_samples,
            last_updated_at=progress.last_updated_at,
        )
        return render(answer)


class DistributionsView(ApiView):
    scope = "runs"

    @extend_schema(
        operation_id="runs_distributions_get", parameters=query_parameters(DistributionQuery), responses=DistributionAnswer
    )
    def get(self, request: Request, run_id: str) -> Response:
        """Histogram of the rewards or advantages of one step."""
        run, query = access_run(request.user, run_id), read_query(request, DistributionQuery)
        found = queries.distribution_of(run, column=query.type.rstrip("s"), step=query.step)
        return render(DistributionAnswer(bins=found.bins, step=found.step))


class CheckpointsView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="runs_checkpoints_list", responses=CheckpointsAnswer)
    def get(self, request: Request, run_id: str) -> Response:
        """Committed checkpoints, each resumable and a place to start another run from."""
        rows = queries.checkpoints_of(access_run(request.user, run_id))
        return render(CheckpointsAnswer(checkpoints=[render_checkpoint(row) for row in rows]))
