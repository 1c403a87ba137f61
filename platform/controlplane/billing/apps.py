"""Registers the app. Knows its label and nothing else."""

from django.apps import AppConfig


class BillingConfig(AppConfig):
    name = "controlplane.billing"
    label = "billing"
