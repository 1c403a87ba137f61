"""Bodies that a trainer elsewhere sends, as public trainers spell them. Knows spellings and limits; decides nothing.

Trainers of several versions send more than we keep, so that unknown fields are passed over here and nowhere else in the API.
"""

import json
import math
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from controlplane.core.schemas import Answer, CamelAnswer

STEP_MAX = 10**9
COUNT_MAX = 10**6
NAME_LENGTH_MAX = 128
METRICS_MAX = 1024
"""Names in one report. A run page shows fewer; all are kept."""
TABLE_BYTES_MAX = 2**20

Step = Annotated[int, Field(ge=0, le=STEP_MAX)]
Count = Annotated[int, Field(ge=1, le=COUNT_MAX)]
RunId = Annotated[str, Field(min_length=1, max_length=64)]


def _of_moderate_size(table: dict[str, Any]) -> dict[str, Any]:
    if len(json.dumps(table)) > TABLE_BYTES_MAX:
        raise ValueError(f"holds more than {TABLE_BYTES_MAX} bytes of JSON")
    return table


Table = Annotated[dict[str, Any], AfterValidator(_of_moderate_size)]


class Report(BaseModel):
    """A body from elsewhere: what we do not know is passed over."""

    model_config = ConfigDict(extra="ignore", frozen=True, allow_inf_nan=False)


class ExternalEnvironment(Report):
    id: Annotated[str, Field(min_length=1, max_length=255)]
    name: Annotated[str, Field(max_length=255)] | None = None


class ExternalRun(Report):
    """`max_steps` is 0 where the trainer has no limit. `run_config` is the trainer's own configuration, shown as it came."""

    base_model: Annotated[str, Field(min_length=1, max_length=127)] = "unknown"
    name: Annotated[str, Field(min_length=1, max_length=100)] | None = None
    max_steps: Step | None = 0
    batch_size: Count | None = None
    rollouts_per_example: Count | None = None
    seq_len: Count | None = None
    environments: Annotated[list[ExternalEnvironment], Field(max_length=64)] = []
    run_config: Table = {}
    wandb_project: Annotated[str, Field(max_length=255)] | None = None


class MetricsReport(Report):
    """One step's numbers, `step` among them. What is no finite number is left out and named in the answer."""

    run_id: RunId
    metrics: Annotated[dict[Annotated[str, Field(max_length=NAME_LENGTH_MAX)], Any], Field(max_length=METRICS_MAX)]
    step: Step | None = None

    @model_validator(mode="after")
    def _names_a_step(self) -> Self:
        if not 0 <= self.step_number() <= STEP_MAX:
            raise ValueError(f"metrics.step must be a whole number from 0 to {STEP_MAX}")
        return self

    def step_number(self) -> int:
        """-1 where none is named."""
        told = self.metrics.get("step", self.step)
        return int(told) if _is_number(told) and float(told).is_integer() else -1

    def numbers(self) -> dict[str, float]:
        return {name: float(value) for name, value in self._told().items() if _is_number(value)}

    def left_out(self) -> list[str]:
        return sorted(name for name, value in self._told().items() if not _is_number(value))

    def _told(self) -> dict[str, Any]:
        """Without the step itself, and what a trainer notes for itself (`_timestamp`)."""
        return {name: value for name, value in self.metrics.items() if name != "step" and not name.startswith("_")}


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


class PresignRequest(Report):
    run_id: RunId
    step: Step


class ConfirmRequest(Report):
    run_id: RunId
    step: Step
    s3_key: Annotated[str, Field(min_length=1, max_length=512)]


class FinalizeRequest(Report):
    """`exit_code` other than 0 says that the trainer failed; without one it completed."""

    run_id: RunId
    summary: Table = {}
    exit_code: Annotated[int, Field(ge=-(2**31), lt=2**31)] | None = None


class StatusRequest(Report):
    status: Literal["completed", "failed", "stopped"]
    error_message: Annotated[str, Field(max_length=2000)] | None = None


class MetricsAccepted(Answer):
    accepted: int
    left_out: list[str]


class SignedUpload(Answer):
    """Where to PUT the file, without a credential, and what to confirm it by."""

    presignedUrl: str
    s3Key: str


class PresignAnswer(Answer):
    data: SignedUpload


class SamplesAccepted(CamelAnswer):
    run_id: str
    step: int
    accepted: int
