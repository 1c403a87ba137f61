"""HTTP face of runs: parse, door, service, render. No rule lives here."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.billing.queries import subject_totals, subject_usage
from controlplane.core.schemas import query_parameters, read_query, render
from controlplane.core.views import ApiView
from controlplane.pools.access import live_lease
from controlplane.runs import queries, services
from controlplane.runs.access import access_run
from controlplane.runs.catalogue import trainable_models
from controlplane.runs.models import Run
from controlplane.runs.schemas import (
    CreateQuery,
    DeletedAnswer,
    ForkRequest,
    ModelsAnswer,
    RunEnvelope,
    RunPage,
    RunsQuery,
    Standing,
    pages,
    render_run,
)
from controlplane.teams.actors import actor_in
from trainer.contracts.run_config import RunConfig


class ForkView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="checkpoints_fork", request=ForkRequest, responses=RunEnvelope)
    def post(self, request: Request, checkpoint_id: str) -> Response:
        """Start a run that goes on where the checkpoint's run was: moments, schedule, place in the data. The body's fields are
        laid over that run's configuration."""
        return rendered(services.fork_run(actor=actor_in(request), checkpoint_id=checkpoint_id, changes=request.data))


class RunsView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="runs_list", parameters=query_parameters(RunsQuery), responses=RunPage)
    def get(self, request: Request) -> Response:
        """The runs of the team, newest first."""
        query = read_query(request, RunsQuery)
        runs = queries.chosen_runs(
            queries.runs_of(request.user, mine=query.mine),
            status=query.status,
            model=query.model,
            environment=query.environment,
            search=query.search,
        )
        total, offset = runs.count(), (query.page - 1) * query.limit
        rows = list(runs[offset : offset + query.limit])
        places, standings = queries.places_in_queue(rows), standings_of(rows)
        page = RunPage(
            runs=[render_run(run, runs_ahead=places.get(run.id), standing=standings[run.id]) for run in rows],
            total=total,
            page=query.page,
            limit=query.limit,
            total_pages=pages(total, query.limit),
        )
        return render(page)

    @extend_schema(operation_id="runs_create", request=RunConfig, parameters=query_parameters(CreateQuery), responses=RunEnvelope)
    def post(self, request: Request) -> Response:
        """Start a run. The answer echoes the effective configuration; a field that is unknown or out of range is named."""
        query = read_query(request, CreateQuery)
        return rendered(services.create_run(actor=request.user, body=request.data, force=query.force))


class RunView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="runs_get", responses=RunEnvelope)
    def get(self, request: Request, run_id: str) -> Response:
        """One run, with what it has caused so far."""
        return rendered(access_run(request.user, run_id))

    @extend_schema(operation_id="runs_delete", responses={200: DeletedAnswer})
    def delete(self, request: Request, run_id: str) -> Response:
        """Take a run that has ended out of sight. Its adapters and its bill stay."""
        services.delete_run(actor=request.user, run_id=run_id)
        return render(DeletedAnswer())


class StopView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="runs_stop", request=None, responses=RunEnvelope)
    def put(self, request: Request, run_id: str) -> Response:
        """End a run. One at work has moments to finish its step."""
        return rendered(services.stop_run(actor=request.user, run_id=run_id))


class PauseView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="runs_pause", request=None, responses=RunEnvelope)
    def put(self, request: Request, run_id: str) -> Response:
        """Write a checkpoint and give the place back, until `resume`."""
        return rendered(services.pause_run(actor=request.user, run_id=run_id))


class ResumeView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="runs_resume", request=None, responses=RunEnvelope)
    def put(self, request: Request, run_id: str) -> Response:
        """Go on where a paused run left off."""
        return rendered(services.resume_run(actor=request.user, run_id=run_id))


class RestartView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="runs_restart", request=None, responses=RunEnvelope)
    def put(self, request: Request, run_id: str) -> Response:
        """Begin a new segment from the newest checkpoint."""
        return rendered(services.restart_run(actor=request.user, run_id=run_id))


def rendered(run: Run) -> Response:
    usage, lease = subject_usage("run", run.id), live_lease("run", run.id)
    answer = RunEnvelope(run=render_run(run, runs_ahead=queries.runs_ahead(run), usage=usage, lease=lease))
    return render(answer)


class ModelsView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="runs_models_list", responses=ModelsAnswer)
    def get(self, request: Request) -> Response:
        """Base models that can be trained, with their prices."""
        return render(ModelsAnswer(models=trainable_models()))


def standings_of(runs: list[Run]) -> dict[str, Standing]:
    """How well the runs of a page do and what they have cost, by run id."""
    rewards, costs = queries.latest_rewards(runs), subject_totals("run", [run.id for run in runs])
    return {run.id: Standing(rewards.get(run.id), costs.get(run.id, 0)) for run in runs}
