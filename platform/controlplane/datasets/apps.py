"""Registers the app with Django, and nothing else."""

from django.apps import AppConfig


class DatasetsConfig(AppConfig):
    name = "controlplane.datasets"
    label = "datasets"
    default_auto_field = "django.db.models.BigAutoField"
