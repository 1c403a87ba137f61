"""The gateway's reads over HTTP: models, and the team's requests. Parse, call, render."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.adapters.errors import UnknownModel
from controlplane.core.pagination import CursorQuery, cursor_page
from controlplane.core.schemas import query_parameters, read_query, render
from controlplane.core.views import ApiView
from controlplane.inference import queries
from controlplane.inference.schemas import ModelList, ModelRow, RequestPage, RequestRow
from controlplane.teams.actors import Actor, actor_in
from controlplane.teams.models import Team


class ModelsView(ApiView):
    """Open to all: without a key it lists the base models. A key that is sent must be good."""

    scope = "inference"
    open_to_visitors = True

    @extend_schema(operation_id="inference_models_list", responses=ModelList)
    def get(self, request: Request) -> Response:
        """Models that the caller may name, with prices."""
        models = queries.served_models(_team_of(request))
        return render(ModelList(data=models))


class ModelView(ApiView):
    scope = "inference"
    open_to_visitors = True

    @extend_schema(operation_id="inference_models_get", responses=ModelRow)
    def get(self, request: Request, model_id: str) -> Response:
        """One model."""
        for row in queries.served_models(_team_of(request)):
            if row.id == model_id:
                return render(row)
        raise UnknownModel(model_id)


class InferenceRequestsView(ApiView):
    """The gateway's own records, newest first: what a bill can be recomputed from."""

    scope = "inference"

    @extend_schema(operation_id="inference_requests_list", parameters=query_parameters(CursorQuery), responses=RequestPage)
    def get(self, request: Request) -> Response:
        """The team's requests as the gateway recorded them, newest first."""
        page = cursor_page(queries.team_requests(actor_in(request).team), read_query(request, CursorQuery), RequestRow.of)
        return render(RequestPage.model_validate(page))


def _team_of(request: Request) -> Team | None:
    return request.user.team if isinstance(request.user, Actor) else None
