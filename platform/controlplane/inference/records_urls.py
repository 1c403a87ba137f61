"""Routes of the gateway's records, below `/api/v1` (see `controlplane.urls`)."""

from controlplane.core.routes import endpoint
from controlplane.inference import api

urlpatterns = endpoint("inference/requests", api.InferenceRequestsView)
