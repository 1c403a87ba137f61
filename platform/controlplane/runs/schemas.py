"""How runs look on the wire: the public client's camelCase run object, and our own additions to it.

Knows spelling only. Numbers come from `queries` and `billing.queries`.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from controlplane.billing.queries import SubjectUsage
from controlplane.core.pagination import OFFSET_MAX
from controlplane.core.schemas import Answer, CamelAnswer, Query
from controlplane.pools.models import Lease
from controlplane.runs.models import Checkpoint, Run, RunEvent, RunMetric
from controlplane.runs.states import RunKind

PAGE_MAX = 1000


class RunsQuery(Query):
    page: Annotated[int, Field(ge=1, le=OFFSET_MAX)] = 1
    limit: Annotated[int, Field(ge=1, le=PAGE_MAX)] = 100
    mine: bool = False
    status: Literal["QUEUED", "PENDING", "RUNNING", "PAUSING", "PAUSED", "COMPLETED", "FAILED", "STOPPED"] | None = None
    model: Annotated[str, Field(max_length=127)] = ""
    environment: Annotated[str, Field(max_length=255)] = ""
    search: Annotated[str, Field(max_length=100)] = ""
    """Part of the run's name."""


class CreateQuery(Query):
    force: bool = False


class MetricsQuery(Query):
    min_step: Annotated[int, Field(ge=0)] | None = None
    max_step: Annotated[int, Field(ge=0)] | None = None
    limit: Annotated[int, Field(ge=1, le=100_000)] = 100_000


class SamplesQuery(Query):
    """`tag` tells training rollouts (`train`) from those of an evaluation and from the rest that nothing trained on."""

    step: Annotated[int, Field(ge=0)]
    page: Annotated[int, Field(ge=1, le=OFFSET_MAX)] = 1
    limit: Annotated[int, Field(ge=1, le=PAGE_MAX)] = 100
    tag: str | None = None


class DistributionQuery(Query):
    type: Annotated[str, Field(pattern="^(rewards?|advantages?)$")] = "reward"
    step: Annotated[int, Field(ge=0)] | None = None


@dataclass(frozen=True)
class Standing:
    """What a list says of a run beyond its row."""

    latest_reward: float | None
    cost_microusd: int


class FailureAnalysis(CamelAnswer):
    """Why a run failed or paused. `confidence` is 1: it is what the code reported, not a guess."""

    root_cause: str
    evidence: list[str]
    confidence: float = 1.0
    code: str
    detail: dict[str, Any]


class UsageTotals(CamelAnswer):
    """Everything that the run caused, whoever measured it. Seconds and tokens are quantities of meters."""

    training_tokens: int
    input_tokens: int
    output_tokens: int
    total_microusd: int
    quantities: dict[str, int]


class RunAnswer(CamelAnswer):
    id: str
    name: str
    user_id: str
    team_id: str
    rft_cluster_id: str | None
    status: str
    kind: str
    base_model: str
    rollouts_per_example: int
    max_steps: int
    max_tokens: int
    batch_size: int
    loss: str
    teacher: dict[str, Any] | None
    learning_rate: float
    lora_alpha: int | float
    max_inflight_rollouts: int | None
    oversampling_factor: float | None
    environments: list[dict[str, Any]]
    run_config: dict[str, Any]
    eval_config: dict[str, Any] | None
    runs_ahead: int | None
    queue_reason: str | None
    notice: str | None
    started_at: datetime | None
    completed_at: datetime | None
    error_message: str | None
    created_at: datetime
    updated_at: datetime
    failure_analysis: FailureAnalysis | None
    effective_config: dict[str, Any]
    """The whole configuration as it runs, every default filled in; of a run that is trained elsewhere, what its trainer told."""
    step: int
    attempt: int
    segment: int
    stop_requested: bool
    forked_from: "ForkedFrom | None" = None
    usage: UsageTotals | None = None
    latest_reward: float | None = None
    """Mean reward of the newest step; in lists."""
    cost_microusd: int | None = None
    """What the run has cost so far; in lists. A single run has `usage`."""
    phase: str | None = None
    """What the holder said at its last heartbeat that it is doing; of a single run alone, while it is leased."""
    inflight_rollouts: int | None = None


class ForkRequest(Answer):
    """Any field of a run's configuration, to be changed in the fork; these are the usual ones."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: str = ""
    max_steps: int = 100
    learning_rate: float = 1e-4


class ForkedFrom(CamelAnswer):
    """The checkpoint that a fork went on from."""

    checkpoint_id: str
    run_id: str
    step: int


class RunEnvelope(Answer):
    run: RunAnswer


class RunPage(Answer):
    runs: list[RunAnswer]
    total: int
    page: int
    limit: int
    total_pages: int


class LogAnswer(Answer):
    logs: str
    cursor: int


class MetricsAnswer(Answer):
    """One object per step: `step`, `attempt`, `segment`, `at`, `version`, and the metrics by name."""

    metrics: list[dict[str, Any]]


class SamplesAnswer(Answer):
    run_id: str
    samples: list[dict[str, Any]]
    total: int
    page: int
    limit: int
    total_pages: int


class ProgressAnswer(CamelAnswer):
    latest_step: int
    steps_with_samples: list[int]
    steps_with_distributions: list[int]
    last_updated_at: datetime


class DistributionAnswer(Answer):
    bins: list[dict[str, float | int]]
    step: int | None


class CheckpointAnswer(CamelAnswer):
    id: str
    rft_run_id: str
    step: int
    storage_url: str
    digest: str
    status: str = "UPLOADED"
    size_bytes: int
    created_at: datetime
    uploaded_at: datetime


class CheckpointsAnswer(Answer):
    checkpoints: list[CheckpointAnswer]


class EnvServerAnswer(Answer):
    env_name: str
    env_index: int
    pod_name: str
    status: str


class EnvServersAnswer(Answer):
    env_servers: list[EnvServerAnswer]


class ModelAnswer(CamelAnswer):
    """Prices are US dollars per million tokens."""

    name: str
    at_capacity: bool
    training_price_per_mtok: float
    inference_input_price_per_mtok: float
    inference_output_price_per_mtok: float
    display_name: str
    description: str
    context_tokens: int
    rank_max: int
    target_modules: list[str]
    engine: str


class ModelsAnswer(Answer):
    models: list[ModelAnswer]


class DeletedAnswer(Answer):
    success: bool = True


class EventAnswer(Answer):
    seq: int
    segment: int
    attempt: int
    kind: str
    step: int | None
    at: datetime
    payload: dict[str, Any]


def render_run(
    run: Run,
    *,
    runs_ahead: int | None = None,
    usage: SubjectUsage | None = None,
    lease: Lease | None = None,
    standing: Standing | None = None,
) -> RunAnswer:
    config = run.config
    return RunAnswer(
        id=run.id,
        name=run.name,
        user_id=run.created_by_id,
        team_id=run.team_id,
        rft_cluster_id=run.pool.name if run.pool else None,
        status=run.state,
        kind=run.kind,
        base_model=run.base_model,
        rollouts_per_example=config["rollouts_per_example"],
        max_steps=config["max_steps"],
        max_tokens=config["max_tokens"],
        batch_size=config["batch_size"],
        loss=config["algorithm"]["id"] if config["algorithm"]["id"] in {"sft", "opd"} else "rl",
        teacher=config.get("teacher"),
        learning_rate=config["learning_rate"],
        # The public client takes whole numbers only.
        lora_alpha=int(config["lora_alpha"]) if float(config["lora_alpha"]).is_integer() else config["lora_alpha"],
        max_inflight_rollouts=config["max_inflight_rollouts"],
        oversampling_factor=config["oversampling_factor"],
        environments=config["environments"],
        run_config=run.client_config.get("run_config", {}) if run.kind == RunKind.EXTERNAL else run.client_config,
        eval_config=config["eval"],
        runs_ahead=runs_ahead,
        queue_reason=run.queue_reason or None,
        notice=run.notice or None,
        started_at=run.started_at,
        completed_at=run.finished_at,
        error_message=run.failure_message if run.failure_code else None,
        created_at=run.created_at,
        updated_at=run.updated_at,
        failure_analysis=_render_failure(run),
        effective_config=run.client_config if run.kind == RunKind.EXTERNAL else config,
        step=run.step,
        attempt=run.attempt,
        segment=run.segment,
        stop_requested=run.stop_requested_at is not None,
        forked_from=_render_origin(run),
        usage=render_usage(usage) if usage else None,
        latest_reward=standing.latest_reward if standing else None,
        cost_microusd=standing.cost_microusd if standing else None,
        phase=lease.phase or None if lease else None,
        inflight_rollouts=lease.inflight if lease else None,
    )


def _render_origin(run: Run) -> ForkedFrom | None:
    origin = run.forked_from
    return ForkedFrom(**{name: origin[name] for name in ("checkpoint_id", "run_id", "step")}) if origin else None


def _render_failure(run: Run) -> FailureAnalysis | None:
    if not run.failure_code:
        return None
    facts = {name: value for name, value in run.failure_detail.items() if name != "log" and isinstance(value, str | int | float)}
    evidence = [f"{name}: {value}" for name, value in facts.items()]
    return FailureAnalysis(root_cause=run.failure_message, evidence=evidence, code=run.failure_code, detail=run.failure_detail)


def render_usage(usage: SubjectUsage) -> UsageTotals:
    quantities: dict[str, int] = {}
    for line in usage.lines:
        quantities[line.meter] = quantities.get(line.meter, 0) + line.quantity
    return UsageTotals(
        training_tokens=usage.training.quantity,
        input_tokens=usage.inference.input_quantity,
        output_tokens=usage.inference.output_quantity,
        total_microusd=usage.total_microusd,
        quantities=quantities,
    )


def render_metric(row: RunMetric) -> dict[str, Any]:
    origin = {"attempt": row.attempt, "segment": row.segment, "at": row.at.isoformat(), "version": row.version}
    return row.values | origin | {"step": row.step}


def render_checkpoint(row: Checkpoint) -> CheckpointAnswer:
    return CheckpointAnswer(
        id=row.id,
        rft_run_id=row.run_id,
        step=row.step,
        storage_url=row.path,
        digest=row.digest,
        size_bytes=row.size_bytes,
        created_at=row.created_at,
        uploaded_at=row.created_at,
    )


def render_event(event: RunEvent) -> EventAnswer:
    return EventAnswer(
        seq=event.seq,
        segment=event.segment,
        attempt=event.attempt,
        kind=event.kind,
        step=event.step,
        at=event.at,
        payload=event.payload,
    )


def pages(total: int, limit: int) -> int:
    return max(1, -(-total // limit))
