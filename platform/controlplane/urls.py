"""The public address space: API, gateway, signed objects, health, and the single-page app for everything else."""

from django.urls import URLPattern, URLResolver, include, path

from controlplane.settings.base import APPS

urlpatterns: list[URLPattern | URLResolver] = [
    *(path("api/v1/", include(f"controlplane.{app}.urls")) for app in APPS if app not in {"inference", "web"}),
    path("api/v1/", include("controlplane.inference.records_urls")),
    path("api/inference/v1/", include("controlplane.inference.urls")),
    path("hub/", include("controlplane.hub.index_urls")),
    path("", include("controlplane.web.urls")),
]

handler400 = "controlplane.core.problems.bad_request"
handler403 = "controlplane.core.problems.permission_denied"
handler404 = "controlplane.core.problems.page_not_found"
handler500 = "controlplane.core.problems.server_error"
