"""Addresses of the package index and of badges, below `/hub/`.

Installers insist on the trailing slash. No owner is called `-`.
"""

from django.urls import URLPattern, path

from controlplane.hub import badge_image, index

urlpatterns: list[URLPattern] = [
    path("-/<str:token>/simple/", index.token_index, name="token-index"),
    path("-/<str:token>/simple/<str:project>/", index.token_project, name="token-project"),
    path("-/<str:token>/packages/<str:filename>", index.token_package, name="token-package"),
    path("<str:owner>/<str:name>/badge.svg", badge_image.environment_badge, name="badge-image"),
    path("<str:owner>/<str:name>/simple/", index.environment_index, name="environment-index"),
    path("<str:owner>/<str:name>/simple/<str:project>/", index.environment_project, name="environment-project"),
    path("<str:owner>/<str:name>/packages/<str:filename>", index.environment_package, name="package"),
]
