"""Registers the app with Django, and nothing else."""

from django.apps import AppConfig


class AuditConfig(AppConfig):
    name = "controlplane.audit"
    label = "audit"
    default_auto_field = "django.db.models.BigAutoField"
