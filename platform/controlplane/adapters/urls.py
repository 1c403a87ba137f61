"""Routes of the app, below `/api/v1` (see `controlplane.urls`)."""

from controlplane.adapters import api
from controlplane.core.routes import endpoint

urlpatterns = [
    *endpoint("rft/adapters", api.AdaptersView),
    *endpoint("rft/adapters/<str:adapter_id>", api.AdapterView),
    *endpoint("rft/adapters/<str:adapter_id>/deploy", api.DeployAdapterView),
    *endpoint("rft/adapters/<str:adapter_id>/unload", api.UnloadAdapterView),
    *endpoint("rft/checkpoints/<str:checkpoint_id>/deploy", api.DeployCheckpointView),
    *endpoint("rft/deployable-models", api.DeployableModelsView),
]
