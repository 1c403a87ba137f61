"""Routes of the app, below `/api/v1` (see `controlplane.urls`)."""

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
