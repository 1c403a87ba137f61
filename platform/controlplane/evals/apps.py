"""Registers the app with Django, and nothing else."""

from django.apps import AppConfig


class EvalsConfig(AppConfig):
    name = "controlplane.evals"
    label = "evals"
    default_auto_field = "django.db.models.BigAutoField"
