"""Routes of the app, below `/api/v1` (see `controlplane.urls`): what a public trainer finds below its `PRIME_API_BASE`."""

from controlplane.core.routes import endpoint
from controlplane.ingest import api

urlpatterns = [
    *endpoint("rft/external-runs", api.ExternalRunsView),
    *endpoint("rft/external-runs/<str:run_id>/status", api.StatusView),
    *endpoint("rft/metrics", api.MetricsView),
    *endpoint("rft/samples/presign", api.PresignView),
    *endpoint("rft/samples/confirm", api.ConfirmView),
    *endpoint("rft/finalize", api.FinalizeView),
]
