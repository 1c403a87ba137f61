"""Django's registration of the hub; tells the internal API that attempts on release checks are answered here."""

from django.apps import AppConfig


class HubConfig(AppConfig):
    name = "controlplane.hub"
    label = "hub"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Models may be imported only once every app is loaded.
        from controlplane.hub.attempts import ReleaseSubject
        from controlplane.pools.subjects import register

        register("release", ReleaseSubject())
