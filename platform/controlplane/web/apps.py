"""Registers the app with Django, and nothing else."""

from django.apps import AppConfig


class WebConfig(AppConfig):
    name = "controlplane.web"
    label = "web"
    default_auto_field = "django.db.models.BigAutoField"
