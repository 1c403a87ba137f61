"""HTTP face of runs: parse, door, service, render. No rule lives here."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.billing.queries import subject_usage
from controlplane.core.errors import NotFound
from controlplane.core.schemas import query_parameters, read_query, render
from controlplane.runs import queries, services
from controlplane.runs.access import access_run
from controlplane.runs.catalogue import available_models, trainable_models
from controlplane.runs.models import Run
from controlplane.runs.schemas import (
    CreateQuery,
    DeletedAnswer,
    ModelsAnswer,
    RunEnvelope,
    RunPage,
    RunsQuery,
    pages,
    render_run,
)
from trainer.contracts.run_config import RunConfig


class RunsView(APIView):
    """The team's runs."""

    scope = "runs"

    @extend_schema(operation_id="list_runs", parameters=query_parameters(RunsQuery), responses=RunPage)
    def get(self, request: Request) -> Response:
        query = read_query(request, RunsQuery)
        runs = queries.runs_of(request.user, mine=query.mine)
        total, offset = runs.count(), (query.page - 1) * query.limit
        rows = list(runs[offset : offset + query.limit])
        places = queries.places_in_queue(rows)
        page = RunPage(
            runs=[render_run(run, runs_ahead=places.get(run.id)) for run in rows],
            total=total,
            page=query.page,
            limit=query.limit,
            total_pages=pages(total, query.limit),
        )
        return render(page)

    @extend_schema(operation_id="create_run", request=RunConfig, parameters=query_parameters(CreateQuery), responses=RunEnvelope)
    def post(self, request: Request) -> Response:
        query = read_query(request, CreateQuery)
        return rendered(services.create_run(actor=request.user, body=request.data, force=query.force))


class RunView(APIView):
    scope = "runs"

    @extend_schema(operation_id="get_run", responses=RunEnvelope)
    def get(self, request: Request, run_id: str) -> Response:
        return rendered(access_run(request.user, run_id))

    @extend_schema(operation_id="delete_run", responses=DeletedAnswer)
    def delete(self, request: Request, run_id: str) -> Response:
        services.delete_run(actor=request.user, run_id=run_id)
        return render(DeletedAnswer())


class RunVerbView(APIView):
    """`PUT …/{verb}`: what the owner asks of a run. Each verb answers the run as it stands then."""

    scope = "runs"
    verb: Any = None

    def put(self, request: Request, run_id: str) -> Response:
        return rendered(type(self).verb(actor=request.user, run_id=run_id))


@extend_schema(operation_id="stop_run", request=None, responses=RunEnvelope)
class StopView(RunVerbView):
    verb = services.stop_run


@extend_schema(operation_id="pause_run", request=None, responses=RunEnvelope)
class PauseView(RunVerbView):
    verb = services.pause_run


@extend_schema(operation_id="resume_run", request=None, responses=RunEnvelope)
class ResumeView(RunVerbView):
    verb = services.resume_run


@extend_schema(operation_id="restart_run", request=None, responses=RunEnvelope)
class RestartView(RunVerbView):
    verb = services.restart_run


def rendered(run: Run) -> Response:
    usage = subject_usage("run", run.id)
    answer = RunEnvelope(run=render_run(run, runs_ahead=queries.runs_ahead(run), usage=usage))
    return render(answer)


class ModelsView(APIView):
    """Base models that can be trained, with their prices."""

    scope = "runs"

    @extend_schema(operation_id="list_trainable_models", responses=ModelsAnswer)
    def get(self, request: Request) -> Response:
        return render(ModelsAnswer(models=trainable_models()))


class AvailableModelsView(APIView):
    """The same models, as newer public clients ask for them."""

    scope = "runs"

    @extend_schema(operation_id="list_available_models", responses={200: dict})
    def get(self, request: Request) -> Response:
        return Response({"models": available_models(), "onDemand": []})


class PrepareView(APIView):
    """Local validation against another trainer's schema does not exist here; the newest public client skips it on a 404."""

    scope = "runs"

    @extend_schema(operation_id="prepare_run", request=None, responses={404: None})
    def post(self, request: Request) -> Response:
        raise NotFound("configurations are checked when a run is created")
