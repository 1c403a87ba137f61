"""Registers the app with Django, and nothing else."""

from django.apps import AppConfig


class AdaptersConfig(AppConfig):
    name = "controlplane.adapters"
    label = "adapters"
    default_auto_field = "django.db.models.BigAutoField"
