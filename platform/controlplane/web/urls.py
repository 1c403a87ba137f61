"""Addresses outside the API: signed objects, health, the single-page app. The app takes what nobody else took."""

from django.urls import URLPattern, path, re_path

from controlplane.core.objects.views import ObjectView
from controlplane.web import views

urlpatterns: list[URLPattern] = [
    path("objects/<path:key>", ObjectView.as_view(), name="object"),
    path("healthz", views.health, name="health"),
    re_path(r"^(?!api(?:/|$)|internal/|hub/|objects/).*$", views.single_page_app, name="app"),
]
