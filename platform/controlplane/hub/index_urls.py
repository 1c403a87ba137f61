"""Addresses of the package index, below `/hub/`. Installers insist on the trailing slash."""

from django.urls import URLPattern, path

from controlplane.hub import index

urlpatterns: list[URLPattern] = [
    path("<str:owner>/simple/", index.owner_index, name="owner-index"),
    path("<str:owner>/simple/<str:project>/", index.owner_project, name="owner-project"),
    path("<str:owner>/<str:name>/simple/", index.environment_index, name="environment-index"),
    path("<str:owner>/<str:name>/simple/<str:project>/", index.environment_project, name="environment-project"),
    path("<str:owner>/<str:name>/packages/<str:filename>", index.package, name="package"),
]
