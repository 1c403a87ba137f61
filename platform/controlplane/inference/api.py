"""The gateway's reads over HTTP: models, and the team's requests. Parse, call, render."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.adapters.errors import UnknownModel
from controlplane.core.errors import Forbidden
from controlplane.core.pagination import CursorQuery, cursor_page
from controlplane.core.schemas import query_parameters, read_query, render
from controlplane.inference import queries
from controlplane.inference.schemas import ModelList, ModelRow, RequestPage, RequestRow
from controlplane.teams.actors import Actor, actor_in
from controlplane.teams.models import Team

READ_SCOPE = "inference:read"


class ModelsView(APIView):
    """Open to all: without a key it lists the base models. A key that is sent must be good."""

    permission_classes = ()

    @extend_schema(operation_id="inference_models_list", responses=ModelList)
    def get(self, request: Request) -> Response:
        """Models that the caller may name, with prices."""
        models = queries.served_models(_team_of(request))
        return render(ModelList(data=models))


class ModelView(APIView):
    permission_classes = ()

    @extend_schema(operation_id="inference_models_get", responses=ModelRow)
    def get(self, request: Request, model_id: str) -> Response:
        """One model."""
        for row in queries.served_models(_team_of(request)):
            if row.id == model_id:
                return render(row)
        raise UnknownModel(model_id)


class InferenceRequestsView(APIView):
    """The gateway's own records, newest first: what a bill can be recomputed from."""

    scope = "inference"

    @extend_schema(operation_id="inference_requests_list", parameters=query_parameters(CursorQuery), responses=RequestPage)
    def get(self, request: Request) -> Response:
        """The team's requests as the gateway recorded them, newest first."""
        page = cursor_page(queries.team_requests(actor_in(request).team), read_query(request, CursorQuery), RequestRow.of)
        return render(RequestPage.model_validate(page))


def _team_of(request: Request) -> Team | None:
    if not isinstance(request.user, Actor):
        return None
    if not request.user.may(READ_SCOPE):
        raise Forbidden(f"The API key lacks the scope {READ_SCOPE}.", code="scope_missing")
    return request.user.team
