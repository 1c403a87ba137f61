"""The address space of leased processes, served on its own port and never by the public process."""

from django.urls import URLPattern, URLResolver, include, path

from controlplane.web.views import health

urlpatterns: list[URLPattern | URLResolver] = [
    path("internal/v1/", include("controlplane.pools.internal_urls")),
    path("internal/v1/", include("controlplane.runs.internal_urls")),
    path("internal/v1/", include("controlplane.secrets.internal_urls")),
    path("internal/v1/", include("controlplane.adapters.internal_urls")),
    path("healthz", health, name="health"),
]

handler400 = "controlplane.core.problems.bad_request"
handler403 = "controlplane.core.problems.permission_denied"
handler404 = "controlplane.core.problems.page_not_found"
handler500 = "controlplane.core.problems.server_error"
