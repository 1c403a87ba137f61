"""Django's registration of the evals app; tells the internal API that attempts on evaluations are answered here."""

from django.apps import AppConfig


class EvalsConfig(AppConfig):
    name = "controlplane.evals"
    label = "evals"

    def ready(self) -> None:
        # Models may be imported only once every app is loaded.
        from controlplane.evals.attempts import EvalSubject
        from controlplane.pools.subjects import register

        register("eval", EvalSubject())
