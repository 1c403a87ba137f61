"""HTTP face of the audit log."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.audit import queries
from controlplane.audit.schemas import AuditEventOut, AuditPage
from controlplane.core.pagination import CursorQuery, cursor_page
from controlplane.core.schemas import query_parameters, read_query
from controlplane.core.views import ApiView
from controlplane.teams.actors import actor_in


class AuditEventsView(ApiView):
    scope = "teams"

    @extend_schema(operation_id="audit_events_list", parameters=query_parameters(CursorQuery), responses=AuditPage)
    def get(self, request: Request) -> Response:
        """What the team's members did, newest first. Admins only."""
        actor_in(request).require_admin()
        rows = queries.list_events(actor_in(request))
        return Response(cursor_page(rows, read_query(request, CursorQuery), lambda row: AuditEventOut.of(row).model_dump()))
