"""Routes of `/internal/v1` that hand values out (trainer/contracts/internal.py). Only `controlplane.urls_internal` has them."""

from django.urls import path

from controlplane.secrets import internal_api as api

urlpatterns = [path("releases/<str:release_id>/values", api.SandboxValuesView.as_view(), name="internal-values")]
