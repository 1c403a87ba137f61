"""Routes of the API about itself, below `/api/v1`."""

from django.urls import URLPattern
from drf_spectacular.views import SpectacularJSONAPIView

from controlplane.core.routes import endpoint

urlpatterns: list[URLPattern] = [*endpoint("openapi.json", SpectacularJSONAPIView)]
