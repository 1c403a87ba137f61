"""Django's registration of the app; tells the internal API that attempts on exports are answered here."""

from django.apps import AppConfig


class AdaptersConfig(AppConfig):
    name = "controlplane.adapters"
    label = "adapters"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Models may be imported only once every app is loaded.
        from controlplane.adapters.attempts import ExportSubject
        from controlplane.pools.subjects import register

        register("export", ExportSubject())
