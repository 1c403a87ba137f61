"""HTTP of exports: parse, door, service, render. No rule lives here."""

from django.http import StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.adapters import access, exports
from controlplane.adapters.schemas import ExportAnswer, ExportList, ExportRow, RequestExport
from controlplane.core.objects.sending import attachment
from controlplane.core.schemas import read_body, render
from controlplane.core.views import ApiView
from controlplane.teams.actors import actor_in


class AdapterExportsView(ApiView):
    scope = "adapters"

    @extend_schema(operation_id="adapters_exports_list", responses=ExportList)
    def get(self, request: Request, adapter_id: str) -> Response:
        """The exports of an adapter, newest first."""
        adapter = access.access_adapter(actor_in(request), adapter_id)
        rows = adapter.exports.order_by("-created_at", "-id")[:20]
        return render(ExportList(exports=[ExportRow.of(row) for row in rows]))

    @extend_schema(operation_id="adapters_exports_create", request=RequestExport, responses=ExportAnswer)
    def post(self, request: Request, adapter_id: str) -> Response:
        """Have an adapter's files written for use elsewhere. Asking again finds the export that there is."""
        body = read_body(request, RequestExport)
        return _export(exports.request_export(actor_in(request), adapter_id, body.form))


class ExportView(ApiView):
    scope = "adapters"

    @extend_schema(operation_id="exports_get", responses=ExportAnswer)
    def get(self, request: Request, export_id: str) -> Response:
        """One export: its state and, once READY, its files with their digests."""
        return _export(access.access_export(actor_in(request), export_id))


class ExportFileView(ApiView):
    scope = "adapters"

    @extend_schema(operation_id="exports_files_get", responses={(200, "application/octet-stream"): OpenApiTypes.BINARY})
    def get(self, request: Request, export_id: str, filename: str) -> StreamingHttpResponse:
        """The bytes of one file of an export."""
        file, size_bytes = exports.open_file(access.access_export(actor_in(request), export_id), filename)
        return attachment(file, filename=filename, size_bytes=size_bytes)


def _export(export: exports.Export) -> Response:
    return render(ExportAnswer(export=ExportRow.of(export)))
