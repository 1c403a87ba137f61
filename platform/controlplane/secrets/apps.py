"""Registers the app with Django, and nothing else."""

from django.apps import AppConfig


class SecretsConfig(AppConfig):
    name = "controlplane.secrets"
    label = "secrets"
    default_auto_field = "django.db.models.BigAutoField"
