"""Routes of the app, below `/api/v1`. Those of environments come before the hub's: `secrets` and `variables` stand where an
environment's name could, and no environment has such a name."""

from django.urls import URLPattern

from controlplane.core.routes import endpoint
from controlplane.secrets import api

ENVIRONMENT = "environmentshub/<str:environment_id>"

urlpatterns: list[URLPattern] = [
    *endpoint("secrets", api.SecretsView),
    *endpoint("secrets/<str:secret_id>", api.SecretView),
    *endpoint(f"{ENVIRONMENT}/secrets", api.EnvironmentSecretsView),
    *endpoint(f"{ENVIRONMENT}/secrets/<str:environment_secret_id>", api.EnvironmentSecretView),
    *endpoint(f"{ENVIRONMENT}/secrets/link/<str:secret_id>", api.EnvironmentLinkView),
    *endpoint(f"{ENVIRONMENT}/variables", api.VariablesView),
    *endpoint(f"{ENVIRONMENT}/variables/<str:variable_id>", api.VariableView),
]
