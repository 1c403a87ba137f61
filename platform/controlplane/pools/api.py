"""HTTP of the installation itself: what `prime doctor` asks. No rule lives here."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.schemas import render
from controlplane.core.views import ApiView
from controlplane.pools import queries
from controlplane.pools.schemas import InstallationAnswer


class InstallationView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="installation_get", responses=InstallationAnswer)
    def get(self, request: Request) -> Response:
        """Version, pools with the places that are free, and how the newest sandboxes fared. Nothing of any team."""
        return render(InstallationAnswer.of(queries.pools_with_load(), queries.sandbox_record()))
