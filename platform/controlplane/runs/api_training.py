"""HTTP face of `/training`: how newer public clients start and steer runs. The runs are those of `/rft/runs`."""

from typing import Annotated, Any

from drf_spectacular.utils import extend_schema
from pydantic import Field
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.schemas import Answer, Body, CamelAnswer, read_body, render
from controlplane.core.views import ApiView
from controlplane.runs import services
from controlplane.runs.catalogue import available_models
from controlplane.runs.trainer_config import translate

SHARED = "shared"


class TrainingRequest(Body):
    """`config` is the whole TOML as JSON. Fields about an image or a machine of one's own are refused while they are set."""

    config: dict[str, Any]
    name: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    mode: Annotated[str, Field(pattern="^rl$")] | None = None
    wandbApiKey: str | None = None
    hfToken: str | None = None
    imageTag: None = None
    gpuType: None = None
    volume: None = None
    sourceRef: None = None
    resumeFrom: None = None
    normalizedConfig: None = None


class TrainingAnswer(CamelAnswer):
    """`token_value` is for runs that report from elsewhere; one of ours needs none."""

    run_id: str
    token_value: str = "none"
    on_demand: bool = False
    gpu_type: str = SHARED


class TrainingDeleted(CamelAnswer):
    run_id: str
    deleted: bool = True


class AvailableModels(Answer):
    models: list[dict[str, Any]]
    onDemand: list[dict[str, Any]]


class GpuTypes(Answer):
    gpuTypes: list[str]


def run_request(body: TrainingRequest) -> tuple[dict[str, Any], list[str]]:
    """The request of `POST /rft/runs` that this one means, and what was left out."""
    made, notices = translate(body.config)
    secrets = {"WANDB_API_KEY": body.wandbApiKey, "HF_TOKEN": body.hfToken}
    made["secrets"] = [{"key": key, "value": value} for key, value in secrets.items() if value]
    name = body.name or body.config.get("name")
    return made | ({"name": name} if name else {}), notices


class TrainingRunsView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="training_runs_create", request=TrainingRequest, responses=TrainingAnswer)
    def post(self, request: Request) -> Response:
        """Start a run from a whole-trainer configuration that asks for LoRA."""
        body, notices = run_request(read_body(request, TrainingRequest))
        run = services.create_run(actor=request.user, body=body, notices=notices)
        return render(TrainingAnswer(run_id=run.id))


class TrainingRunView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="training_runs_delete", responses={200: TrainingDeleted})
    def delete(self, request: Request, run_id: str) -> Response:
        """Take a run that has ended out of sight."""
        services.delete_run(actor=request.user, run_id=run_id)
        return render(TrainingDeleted(run_id=run_id))


class TrainingPauseView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="training_runs_pause", request=None, responses=TrainingAnswer)
    def post(self, request: Request, run_id: str) -> Response:
        """Write a checkpoint and give the place back, until `resume`."""
        return render(TrainingAnswer(run_id=services.pause_run(actor=request.user, run_id=run_id).id))


class TrainingResumeView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="training_runs_resume", request=None, responses=TrainingAnswer)
    def post(self, request: Request, run_id: str) -> Response:
        """Go on where a paused run left off."""
        return render(TrainingAnswer(run_id=services.resume_run(actor=request.user, run_id=run_id).id))


class AvailableModelsView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="training_models_list", responses=AvailableModels)
    def get(self, request: Request) -> Response:
        """Base models that can be trained, as newer public clients ask for them."""
        return render(AvailableModels(models=available_models(), onDemand=[]))


class GpuTypesView(ApiView):
    scope = "runs"

    @extend_schema(operation_id="training_gpu_types_list", responses=GpuTypes)
    def get(self, request: Request) -> Response:
        """Machines that can be reserved: none on this installation."""
        return render(GpuTypes(gpuTypes=[]))
