"""HTTP of adapters and deployments: parse, call, render. No rule lives here."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from controlplane.adapters import access, queries, services
from controlplane.adapters.models import Adapter
from controlplane.adapters.schemas import AdapterAnswer, AdapterList, AdapterQuery, AdapterRow, DeployableModels, ModelLimits
from controlplane.core.schemas import read_query
from controlplane.pools.queries import base_models_served
from trainer.contracts.catalogue import load_catalogue


class AdaptersView(APIView):
    scope = "adapters"

    @extend_schema(parameters=[AdapterQuery], responses=AdapterList)
    def get(self, request: Request) -> Response:
        query, rows = read_query(request, AdapterQuery), queries.team_adapters(request.user.team)
        page = rows[query.offset : query.offset + query.limit]
        return _answer(AdapterList(adapters=[AdapterRow.of(row) for row in page], total=rows.count()))


class AdapterView(APIView):
    scope = "adapters"

    @extend_schema(responses=AdapterAnswer)
    def get(self, request: Request, adapter_id: str) -> Response:
        return _render(access.access_adapter(request.user, adapter_id))


class DeployAdapterView(APIView):
    scope = "adapters"

    @extend_schema(request=None, responses=AdapterAnswer)
    def post(self, request: Request, adapter_id: str) -> Response:
        return _render(services.deploy_adapter(request.user, adapter_id))


class UnloadAdapterView(APIView):
    scope = "adapters"

    @extend_schema(request=None, responses=AdapterAnswer)
    def post(self, request: Request, adapter_id: str) -> Response:
        return _render(services.unload_adapter(request.user, adapter_id))


class DeployCheckpointView(APIView):
    scope = "adapters"

    @extend_schema(request=None, responses=AdapterAnswer)
    def post(self, request: Request, checkpoint_id: str) -> Response:
        return _render(services.deploy_checkpoint(request.user, checkpoint_id))


class DeployableModelsView(APIView):
    scope = "adapters"

    @extend_schema(responses=DeployableModels)
    def get(self, request: Request) -> Response:
        served = base_models_served()
        specs = [spec for spec in load_catalogue().values() if spec.id in served]
        limits = {spec.id: ModelLimits(rank_max=spec.rank_max, target_modules=list(spec.target_modules)) for spec in specs}
        return _answer(DeployableModels(models=[spec.id for spec in specs], limits=limits))


def _render(adapter: Adapter) -> Response:
    return _answer(AdapterAnswer(adapter=AdapterRow.of(adapter)))


def _answer(body: AdapterAnswer | AdapterList | DeployableModels) -> Response:
    return Response(body.model_dump(mode="json"))
