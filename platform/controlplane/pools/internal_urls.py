"""Routes of the internal API, below `/internal/v1` (see `controlplane.urls_internal`)."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
