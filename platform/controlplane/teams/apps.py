"""Registers the app with Django, and its credentials with the OpenAPI document."""

from django.apps import AppConfig


class TeamsConfig(AppConfig):
    name = "controlplane.teams"
    label = "teams"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # The document's library may be loaded only once every app is.
        import controlplane.teams.openapi  # noqa: F401
