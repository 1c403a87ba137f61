"""Registers the app with Django, and nothing else."""

from django.apps import AppConfig


class InferenceConfig(AppConfig):
    name = "controlplane.inference"
    label = "inference"
    default_auto_field = "django.db.models.BigAutoField"
