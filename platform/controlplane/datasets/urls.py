"""Routes of the app, below `/api/v1` (see `controlplane.urls`)."""

from controlplane.core.routes import endpoint
from controlplane.datasets import api

urlpatterns = [
    *endpoint("datasets", api.DatasetsView),
    *endpoint("datasets/<str:dataset_id>", api.DatasetView),
    *endpoint("datasets/<str:dataset_id>/finalize", api.FinalizeDatasetView),
]
