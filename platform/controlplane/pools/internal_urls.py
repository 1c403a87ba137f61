"""Routes of `/internal/v1` (trainer/contracts/internal.py). Only `controlplane.urls_internal` includes them."""

from django.urls import path

from controlplane.pools import internal_api as api

urlpatterns = [
    path("attempt", api.AttemptSpecView.as_view(), name="internal-attempt"),
    path("heartbeat", api.HeartbeatView.as_view(), name="internal-heartbeat"),
    path("events", api.EventsView.as_view(), name="internal-events"),
    path("usage", api.UsageView.as_view(), name="internal-usage"),
    path("rollouts", api.RolloutsView.as_view(), name="internal-rollouts"),
    path("versions", api.VersionsView.as_view(), name="internal-versions"),
    path("checkpoints", api.CheckpointsView.as_view(), name="internal-checkpoints"),
    path("finish", api.FinishView.as_view(), name="internal-finish"),
]
