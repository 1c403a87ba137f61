"""HTTP of adapters and deployments: parse, call, render. No rule lives here."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.adapters import access, queries, services
from controlplane.adapters.models import Adapter
from controlplane.adapters.schemas import AdapterAnswer, AdapterList, AdapterQuery, AdapterRow, DeployableModels, ModelLimits
from controlplane.core.schemas import query_parameters, read_query, render
from controlplane.core.views import ApiView
from controlplane.hub.access import release_ids
from controlplane.pools.limits import limits_of
from controlplane.pools.queries import pools
from controlplane.teams.actors import actor_in
from trainer.contracts.catalogue import load_catalogue


class AdaptersView(ApiView):
    scope = "adapters"

    @extend_schema(operation_id="adapters_list", parameters=query_parameters(AdapterQuery), responses=AdapterList)
    def get(self, request: Request) -> Response:
        """The team's adapters, newest first."""
        query, rows = read_query(request, AdapterQuery), queries.team_adapters(actor_in(request).team)
        if query.run_id:
            rows = rows.filter(run_id=query.run_id)
        if query.environment:
            rows = queries.trained_on(rows, release_ids(actor_in(request), query.environment))
        page = rows[query.offset : query.offset + query.limit]
        return render(AdapterList(adapters=[AdapterRow.of(row) for row in page], total=rows.count()))


class AdapterView(ApiView):
    scope = "adapters"

    @extend_schema(operation_id="adapters_get", responses=AdapterAnswer)
    def get(self, request: Request, adapter_id: str) -> Response:
        """One adapter: one version of a run."""
        return _adapter(access.access_adapter(actor_in(request), adapter_id))


class DeployAdapterView(ApiView):
    scope = "adapters"

    @extend_schema(operation_id="adapters_deploy", request=None, responses=AdapterAnswer)
    def post(self, request: Request, adapter_id: str) -> Response:
        """Have the adapter served. Asking twice is one wish."""
        return _adapter(services.deploy_adapter(actor_in(request), adapter_id))


class UnloadAdapterView(ApiView):
    scope = "adapters"

    @extend_schema(operation_id="adapters_unload", request=None, responses=AdapterAnswer)
    def post(self, request: Request, adapter_id: str) -> Response:
        """Have the adapter no longer served; the gateway refuses it at once."""
        return _adapter(services.unload_adapter(actor_in(request), adapter_id))


class DeployCheckpointView(ApiView):
    scope = "adapters"

    @extend_schema(operation_id="checkpoints_deploy", request=None, responses=AdapterAnswer)
    def post(self, request: Request, checkpoint_id: str) -> Response:
        """Have the adapter of a checkpoint's step served."""
        return _adapter(services.deploy_checkpoint(actor_in(request), checkpoint_id))


class DeployableModelsView(ApiView):
    scope = "adapters"

    @extend_schema(operation_id="deployable_models", responses=DeployableModels)
    def get(self, request: Request) -> Response:
        """Base models that adapters can be deployed on, with their limits."""
        found = {pool.base_model: limits_of(pool) for pool in pools() if pool.base_model in load_catalogue()}
        limits = {
            name: ModelLimits(
                rank_max=one.rank_max,
                target_modules=list(one.target_modules),
                context_tokens=one.context_tokens,
                engine=one.engine,
            )
            for name, one in found.items()
        }
        return render(DeployableModels(models=list(limits), limits=limits))


def _adapter(adapter: Adapter) -> Response:
    return render(AdapterAnswer(adapter=AdapterRow.of(adapter)))
