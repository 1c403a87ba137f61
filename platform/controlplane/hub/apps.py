"""Registers the app with Django, and nothing else."""

from django.apps import AppConfig


class HubConfig(AppConfig):
    name = "controlplane.hub"
    label = "hub"
    default_auto_field = "django.db.models.BigAutoField"
