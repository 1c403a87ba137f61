"""Routes of `/internal/v1` that take exports in. Only `controlplane.urls_internal` includes them."""

from django.urls import path

from controlplane.adapters import internal_api as api

urlpatterns = [
    path("exports/<str:name>/<int:part>", api.ExportPartView.as_view(), name="internal-export-part"),
]
