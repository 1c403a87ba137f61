"""Routes of the app, below `/api/v1` (see `controlplane.urls`)."""

from django.urls import URLPattern

from controlplane.core.routes import endpoint
from controlplane.evals import api

urlpatterns: list[URLPattern] = [
    *endpoint("evaluations", api.EvaluationsView),
    *endpoint("evaluations/<str:evaluation_id>", api.EvaluationView),
    *endpoint("evaluations/<str:evaluation_id>/samples", api.SamplesView),
    *endpoint("evaluations/<str:evaluation_id>/finalize", api.FinalizeView),
    *endpoint("hosted-evaluations", api.HostedView),
    *endpoint("hosted-evaluations/<str:evaluation_id>/logs", api.HostedLogsView),
    *endpoint("hosted-evaluations/<str:evaluation_id>/cancel", api.HostedCancelView),
]
