"""Routes of the app, below `/api/v1` (see `controlplane.urls`)."""

from controlplane.adapters import api, api_exports
from controlplane.core.routes import endpoint

urlpatterns = [
    *endpoint("rft/adapters", api.AdaptersView),
    *endpoint("rft/adapters/<str:adapter_id>", api.AdapterView),
    *endpoint("rft/adapters/<str:adapter_id>/deploy", api.DeployAdapterView),
    *endpoint("rft/adapters/<str:adapter_id>/unload", api.UnloadAdapterView),
    *endpoint("rft/adapters/<str:adapter_id>/exports", api_exports.AdapterExportsView),
    *endpoint("rft/exports/<str:export_id>", api_exports.ExportView),
    *endpoint("rft/exports/<str:export_id>/files/<str:filename>", api_exports.ExportFileView),
    *endpoint("rft/checkpoints/<str:checkpoint_id>/deploy", api.DeployCheckpointView),
    *endpoint("rft/deployable-models", api.DeployableModelsView),
]
