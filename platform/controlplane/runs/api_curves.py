"""HTTP face of a run's curves, timeline and configuration, as the run page reads them before it follows the event stream."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.schemas import query_parameters, read_query, render
from controlplane.core.views import ApiView
from controlplane.runs import curves, queries
from controlplane.runs.access import access_run
from controlplane.runs.schemas import render_event
from controlplane.runs.schemas_curves import ConfigAnswer, CurvesAnswer, CurvesQuery, TimelineAnswer, TimelineQuery
from controlplane.runs.states import RunKind
from trainer.contracts.run_config import RunConfig
from trainer.contracts.toml_writing import changed_paths, write_toml


class CurvesView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="runs_curves_get", parameters=query_parameters(CurvesQuery), responses=CurvesAnswer)
    def get(self, request: Request, run_id: str) -> Response:
        """The numbers of all steps as columns, thinned to a number of points; branches that a resume left, and attempts."""
        # The run first: an event that comes meanwhile is then seen twice (once here, once in the stream), never missed.
        run, query = access_run(request.user, run_id), read_query(request, CurvesQuery)
        found = curves.curves_of(run, points=query.points, min_step=query.min_step, max_step=query.max_step)
        branches = curves.branches_of(run, points=query.points)
        return render(CurvesAnswer.of(run.events_count, found, curves.spans_of(run), branches))


class TimelineView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="runs_timeline_get", parameters=query_parameters(TimelineQuery), responses=TimelineAnswer)
    def get(self, request: Request, run_id: str) -> Response:
        """What happened to the run: states, evaluations, checkpoints, incidents, warnings."""
        run, query = access_run(request.user, run_id), read_query(request, TimelineQuery)
        total, events = queries.timeline_of(run, limit=query.limit)
        answer = TimelineAnswer(
            cursor=run.events_count, events=[render_event(event) for event in events], left_out=total - len(events)
        )
        return render(answer)


class ConfigView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="runs_config_get", responses=ConfigAnswer)
    def get(self, request: Request, run_id: str) -> Response:
        """The configuration as TOML to start the run again, and which fields differ from the defaults. No secrets. Empty for a
        run that is trained elsewhere: nothing here starts it again."""
        run = access_run(request.user, run_id)
        if run.kind == RunKind.EXTERNAL:
            return render(ConfigAnswer(toml="", changed=[]))
        config = RunConfig.model_validate(run.config)
        return render(ConfigAnswer(toml=write_toml(config), changed=changed_paths(config)))
