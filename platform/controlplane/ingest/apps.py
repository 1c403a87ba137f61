"""Registers the app with Django, and nothing else."""

from django.apps import AppConfig


class IngestConfig(AppConfig):
    name = "controlplane.ingest"
    label = "ingest"
    default_auto_field = "django.db.models.BigAutoField"
