"""Routes of `/internal/v1` that read runs (trainer/contracts/internal.py). Only `controlplane.urls_internal` includes them."""

from django.urls import path

from controlplane.runs import internal_api as api

urlpatterns = [
    path("replays/<int:environment>/<int:step>", api.ReplayView.as_view(), name="internal-replay"),
    path("datasets/<int:index>", api.DatasetFileView.as_view(), name="internal-dataset"),
]
