"""Django's registration of the runs app; tells the internal API that attempts on runs are answered here."""

from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "controlplane.runs"
    label = "runs"

    def ready(self) -> None:
        # Models may be imported only once every app is loaded.
        from controlplane.pools.subjects import register
        from controlplane.runs.attempts import RunSubject

        register("run", RunSubject())
