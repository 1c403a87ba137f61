"""Routes of the app, below `/api/v1` (see `controlplane.urls`)."""

from django.urls import URLPattern

from controlplane.core.routes import endpoint
from controlplane.runs import api, api_curves, api_reports, api_rollouts, api_training
from controlplane.runs.sse import stream_run_events

RUN = "rft/runs/<str:run_id>"
TRAINING_RUN = "training/runs/<str:run_id>"

urlpatterns: list[URLPattern] = [
    *endpoint("rft/models", api.ModelsView),
    *endpoint("rft/runs", api.RunsView),
    *endpoint(RUN, api.RunView),
    *endpoint(f"{RUN}/stop", api.StopView),
    *endpoint(f"{RUN}/pause", api.PauseView),
    *endpoint(f"{RUN}/resume", api.ResumeView),
    *endpoint(f"{RUN}/restart", api.RestartView),
    *endpoint(f"{RUN}/logs", api_reports.LogsView),
    *endpoint(f"{RUN}/env-servers", api_reports.EnvServersView),
    *endpoint(f"{RUN}/env-server-logs", api_reports.EnvServerLogsView),
    *endpoint(f"{RUN}/metrics", api_reports.MetricsView),
    *endpoint(f"{RUN}/samples", api_reports.SamplesView),
    *endpoint(f"{RUN}/progress", api_reports.ProgressView),
    *endpoint(f"{RUN}/distributions", api_reports.DistributionsView),
    *endpoint(f"{RUN}/checkpoints", api_reports.CheckpointsView),
    *endpoint(f"{RUN}/curves", api_curves.CurvesView),
    *endpoint(f"{RUN}/timeline", api_curves.TimelineView),
    *endpoint(f"{RUN}/config", api_curves.ConfigView),
    *endpoint(f"{RUN}/groups", api_rollouts.GroupsView),
    *endpoint(f"{RUN}/rollouts/<str:rollout_id>", api_rollouts.RolloutView),
    *endpoint(f"{RUN}/rollouts/<str:rollout_id>/tokens", api_rollouts.TokensView),
    *endpoint(f"{RUN}/events", stream_run_events),
    *endpoint("rft/checkpoints/<str:checkpoint_id>/fork", api.ForkView),
    *endpoint("training/available-fft-models", api_training.AvailableModelsView),
    *endpoint("training/available-gpu-types", api_training.GpuTypesView),
    *endpoint("training/runs", api_training.TrainingRunsView),
    *endpoint(TRAINING_RUN, api_training.TrainingRunView),
    *endpoint(f"{TRAINING_RUN}/pause", api_training.TrainingPauseView),
    *endpoint(f"{TRAINING_RUN}/resume", api_training.TrainingResumeView),
]
