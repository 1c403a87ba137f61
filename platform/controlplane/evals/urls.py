"""Routes of the app, below `/api/v1` (see `controlplane.urls`)."""

from django.urls import URLPattern

from controlplane.core.routes import endpoint
from controlplane.evals import api, api_comparison, api_leaderboard

urlpatterns: list[URLPattern] = [
    *endpoint("evaluations", api.EvaluationsView),
    *endpoint("evaluations/compare", api_comparison.ComparisonView),
    *endpoint("evaluations/compare/examples", api_comparison.ComparedExamplesView),
    *endpoint("evaluations/compare/example", api_comparison.ComparedExampleView),
    *endpoint("evaluations/<str:evaluation_id>", api.EvaluationView),
    *endpoint("evaluations/<str:evaluation_id>/samples", api.SamplesView),
    *endpoint("evaluations/<str:evaluation_id>/finalize", api.FinalizeView),
    *endpoint("environmentshub/<str:owner>/<str:name>/leaderboard", api_leaderboard.LeaderboardView),
    *endpoint("hosted-evaluations", api.HostedView),
    *endpoint("hosted-evaluations/<str:evaluation_id>/logs", api.HostedLogsView),
    *endpoint("hosted-evaluations/<str:evaluation_id>/cancel", api.HostedCancelView),
    *endpoint("hosted-evaluations/<str:evaluation_id>/resume", api.HostedResumeView),
]
