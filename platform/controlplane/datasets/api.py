"""HTTP of datasets: parse, door, service, render. No rule lives here."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.pagination import OffsetQuery
from controlplane.core.schemas import query_parameters, read_body, read_query, render
from controlplane.core.views import ApiView
from controlplane.datasets import access, services
from controlplane.datasets.schemas import DatasetDeclared, DatasetDetail, DatasetList, DatasetRow, DeclareDataset
from controlplane.teams.actors import actor_in


class DatasetsView(ApiView):
    scope = "datasets"

    @extend_schema(operation_id="datasets_list", parameters=query_parameters(OffsetQuery), responses=DatasetList)
    def get(self, request: Request) -> Response:
        """The team's datasets, newest first."""
        query, rows = read_query(request, OffsetQuery), access.checked_datasets(actor_in(request).team_id)
        page = rows.order_by("-created_at", "-id")[query.offset : query.offset + query.limit]
        return render(DatasetList(datasets=[DatasetRow.of(row) for row in page], total=rows.count()))

    @extend_schema(operation_id="datasets_create", request=DeclareDataset, responses=DatasetDeclared)
    def post(self, request: Request) -> Response:
        """Announce a dataset; the answer holds a signed address to PUT its file to, or null when it is there already."""
        dataset, url = services.declare_dataset(actor_in(request), read_body(request, DeclareDataset))
        return render(DatasetDeclared(id=dataset.id, upload_url=url))


class DatasetView(ApiView):
    scope = "datasets"

    @extend_schema(operation_id="datasets_get", responses=DatasetDetail)
    def get(self, request: Request, dataset_id: str) -> Response:
        """One dataset, by name or id, with the report of its import."""
        return render(DatasetDetail.of(access.access_dataset(actor_in(request), dataset_id)))

    @extend_schema(operation_id="datasets_delete", responses={204: None})
    def delete(self, request: Request, dataset_id: str) -> Response:
        """Delete a dataset, by name or id. Refused while a run that has not ended learns from it; adapters that did stay."""
        services.delete_dataset(actor_in(request), dataset_id)
        return Response(status=204)


class FinalizeDatasetView(ApiView):
    scope = "datasets"

    @extend_schema(operation_id="datasets_finalize", request=None, responses=DatasetDetail)
    def post(self, request: Request, dataset_id: str) -> Response:
        """Check an uploaded file line by line and keep it. A refusal names each line."""
        actor = actor_in(request)
        return render(DatasetDetail.of(services.finalize_dataset(actor, access.access_upload(actor, dataset_id))))
