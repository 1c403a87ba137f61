"""Django's registration of the pools app."""

from django.apps import AppConfig


class PoolsConfig(AppConfig):
    name = "controlplane.pools"
    label = "pools"
