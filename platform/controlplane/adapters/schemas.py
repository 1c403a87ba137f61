"""Bodies of the adapters API, in the public client's camelCase. Knows spellings; decides nothing."""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import Field

from controlplane.adapters.models import Adapter, DeploymentStatus, Export, ExportState
from controlplane.core.pagination import OffsetQuery
from controlplane.core.schemas import Answer, Body, CamelAnswer
from trainer.contracts.exports import ExportForm


class AdapterQuery(OffsetQuery):
    """`run_id` keeps the versions of one run, `environment` (`owner/name`) those of runs that used it."""

    limit: Annotated[int, Field(ge=1, le=200)] = 50
    run_id: str = ""
    environment: Annotated[str, Field(max_length=160)] = ""


class AdapterRow(CamelAnswer):
    """`served_name` is what callers put into `model`. Versions exist only once their files do, so the status is always READY."""

    id: str
    display_name: str
    user_id: str
    team_id: str
    rft_run_id: str
    base_model: str
    version: int
    step: int
    status: Literal["READY"] = "READY"
    deployment_status: DeploymentStatus
    deployed_at: datetime | None
    deployment_error: str | None
    served_name: str
    digest: str
    deployed_digest: str | None
    size_bytes: int
    lora_rank: int
    created_at: datetime
    updated_at: datetime

    @classmethod
    def of(cls, row: Adapter) -> Self:
        return cls(
            id=row.pk,
            display_name=row.display_name,
            user_id=row.run.created_by_id,
            team_id=row.team_id,
            rft_run_id=row.run_id,
            base_model=row.base_model,
            version=row.version,
            step=row.step,
            deployment_status=DeploymentStatus(row.deployment_status),
            deployed_at=row.deployed_at,
            deployment_error=row.deployment_error or None,
            served_name=row.served_name,
            digest=row.digest,
            deployed_digest=row.deployed_digest or None,
            size_bytes=row.size_bytes,
            lora_rank=row.lora_rank,
            created_at=row.created_at,
            updated_at=row.updated_at,
        )


class AdapterAnswer(Answer):
    adapter: AdapterRow


class AdapterList(Answer):
    adapters: list[AdapterRow]
    total: int


class ModelLimits(Answer):
    rank_max: int
    target_modules: list[str]
    context_tokens: int
    engine: str


class DeployableModels(Answer):
    """Base models whose adapters can be deployed here, and the limits that a deployment is checked against."""

    models: list[str]
    limits: dict[str, ModelLimits]


class RequestExport(Body):
    """`adapter`: the two files that `peft` loads. `merged`: the whole model with the adapter added, for plain `transformers`."""

    form: ExportForm = "adapter"


class ExportFile(CamelAnswer):
    """`path` is below `/api/v1`; the same credential opens it."""

    name: str
    sha256: str
    size_bytes: int
    path: str


class ExportRow(CamelAnswer):
    """`files` is empty until the export is READY, and again once it is EXPIRED."""

    id: str
    adapter_id: str
    form: ExportForm
    state: ExportState
    error: str | None
    files: list[ExportFile]
    created_at: datetime
    expires_at: datetime | None

    @classmethod
    def of(cls, row: Export) -> Self:
        files = row.files if row.state == ExportState.READY else []
        return cls(
            id=row.pk,
            adapter_id=row.adapter_id,
            form="merged" if row.form == "merged" else "adapter",
            state=ExportState(row.state),
            error=row.error or None,
            files=[ExportFile(**file, path=f"/rft/exports/{row.pk}/files/{file['name']}") for file in files],
            created_at=row.created_at,
            expires_at=row.expires_at,
        )


class ExportAnswer(Answer):
    export: ExportRow


class ExportList(Answer):
    exports: list[ExportRow]
