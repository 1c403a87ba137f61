"""Django's registration of the runs app; tells the internal API that attempts on runs are answered here."""

from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "controlplane.runs"
    label = "runs"
