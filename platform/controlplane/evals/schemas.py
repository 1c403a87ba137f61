"""How evaluations look on the wire: snake_case, bare objects, as the public client and its SDK have them."""

from datetime import datetime
from typing import Annotated, Any

from django.conf import settings
from pydantic import Field, FiniteFloat

from controlplane.core.pagination import OFFSET_MAX
from controlplane.core.schemas import Answer, Body, Query
from controlplane.evals.models import Evaluation
from trainer.contracts.eval_statistics import PASS_THRESHOLD

TEXT_MAX = 20_000
PUBLISHED_METADATA = ("version", "num_examples", "rollouts_per_example")
SAMPLES_PER_PUSH_MAX = 10_000


class EvaluationsQuery(Query):
    skip: Annotated[int, Field(ge=0, le=OFFSET_MAX)] = 0
    limit: Annotated[int, Field(ge=1, le=100)] = 50
    environment_name: str = ""
    environment_id: str = ""
    group_id: str = ""


class SamplesQuery(Query):
    page: Annotated[int, Field(ge=1, le=OFFSET_MAX)] = 1
    limit: Annotated[int, Field(ge=1, le=1000)] = 100
    min_reward: FiniteFloat | None = None
    max_reward: FiniteFloat | None = None


class StatisticsQuery(Query):
    pass_threshold: FiniteFloat = PASS_THRESHOLD


class EnvironmentChoice(Body):
    id: Annotated[str, Field(min_length=1, max_length=255)]
    version_id: str | None = None


class Described(Body):
    """What may be said about an evaluation when it is pushed, and changed later."""

    model_name: Annotated[str, Field(max_length=255)] | None = None
    dataset: Annotated[str, Field(max_length=255)] | None = None
    framework: Annotated[str, Field(max_length=64)] | None = None
    task_type: Annotated[str, Field(max_length=64)] | None = None
    description: Annotated[str, Field(max_length=TEXT_MAX)] | None = None
    tags: Annotated[list[str], Field(max_length=64)] | None = None
    metadata: dict[str, Any] | None = None
    metrics: dict[str, Any] | None = None
    is_public: bool | None = None
    """Whether everybody who may see its environments sees the evaluation."""


class PushEvaluation(Described):
    """Of one or more environments, or of a run."""

    name: Annotated[str, Field(min_length=1, max_length=255)]
    environments: Annotated[list[EnvironmentChoice], Field(max_length=16)] | None = None
    run_id: str | None = None
    suite_id: None = None


class UpdateEvaluation(Described):
    name: Annotated[str, Field(min_length=1, max_length=255)] | None = None


class PushSamples(Body):
    samples: Annotated[list[dict[str, Any]], Field(max_length=SAMPLES_PER_PUSH_MAX)]


class FinalizeEvaluation(Body):
    metrics: dict[str, Any] | None = None


class EvaluationAnswer(Answer):
    evaluation_id: str
    name: str
    status: str
    eval_type: str
    is_hosted: bool
    model_name: str
    group_id: str | None
    environment_ids: list[str]
    environment_names: list[str]
    run_id: str | None
    dataset: str
    framework: str
    task_type: str
    description: str
    tags: list[str]
    metadata: dict[str, Any]
    metrics: dict[str, Any]
    total_samples: int
    avg_score: float | None
    is_public: bool
    error_message: str | None
    error_code: str | None
    error_detail: dict[str, Any]
    eval_config: dict[str, Any] | None
    viewer_url: str
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None
    completed_at: datetime | None


class RewardBin(Answer):
    """`start` belongs to the bin; `end` to the next one, or to the last bin."""

    start: float
    end: float
    count: int


class PassRate(Answer):
    """Over the `examples` with at least k rewards: the chance that at least one of k rollouts solves an example (`any_of`,
    known as pass@k), and that all of them do (`all_of`, pass^k). Unbiased (Chen et al., 2021)."""

    k: int
    examples: int
    any_of: float
    all_of: float


class ScoreStatistics(Answer):
    """Samples without a reward are in no mean: `missing` counts them by reason. `ci_low` and `ci_high` bound the mean with 95 %
    confidence, rollouts of one example taken together (standard error clustered by example, Student's t); null below two
    examples. A rollout has solved its example with a reward of at least `pass_threshold`. Durations and tokens are means over
    the samples with a reward, null where none tells them."""

    examples_count: int
    rewards_count: int
    missing: dict[str, int]
    mean: float | None
    std: float | None
    ci_low: float | None
    ci_high: float | None
    pass_threshold: float
    pass_rates: list[PassRate]
    bins: list[RewardBin]
    duration_mean_s: float | None
    input_tokens_mean: float | None
    output_tokens_mean: float | None


class EvaluationDetail(EvaluationAnswer):
    is_own: bool
    """Whether a team of the caller made it. What others have published is shown without its configuration."""
    statistics: ScoreStatistics | None
    """Null before the first sample."""


class EvaluationPage(Answer):
    evaluations: list[EvaluationAnswer]
    total: int
    skip: int
    limit: int


class HostedAnswer(Answer):
    """`evaluation_id` is the first of `evaluation_ids`, one per environment and model. Several are one group."""

    evaluation_id: str
    evaluation_ids: list[str]
    group_id: str | None
    status: str


class SamplesPushed(Answer):
    evaluation_id: str
    samples_pushed: int
    status: str


class SamplesAnswer(Answer):
    evaluation_id: str
    samples: list[dict[str, Any]]
    total: int
    page: int
    limit: int
    total_pages: int


class LogsAnswer(Answer):
    logs: str
    evaluation_id: str


class CancelAnswer(Answer):
    success: bool
    message: str
    evaluation_id: str
    status: str


class DeletedAnswer(Answer):
    success: bool = True


def render_evaluation(row: Evaluation) -> EvaluationAnswer:
    config = row.config or {}
    # The public client counts on these two being numbers.
    counts = {name: config.get(name, row.metadata.get(name) or 0) for name in ("num_examples", "rollouts_per_example")}
    return EvaluationAnswer(
        evaluation_id=row.id,
        name=row.name,
        status=row.status,
        eval_type=row.eval_type,
        is_hosted=row.is_hosted,
        model_name=row.model_name,
        group_id=row.group_id or None,
        environment_ids=row.environment_ids,
        environment_names=row.environment_names,
        run_id=row.run_id,
        dataset=row.dataset,
        framework=row.framework,
        task_type=row.task_type,
        description=row.description,
        tags=row.tags,
        metadata=row.metadata | counts,
        metrics=row.metrics,
        total_samples=row.samples_count,
        avg_score=row.avg_score,
        is_public=row.is_public,
        error_message=row.error_message or None,
        error_code=row.error_code or None,
        error_detail=row.error_detail,
        eval_config=row.config,
        viewer_url=f"{settings.PUBLIC_ORIGIN}/evaluations/{row.id}",
        created_at=row.created_at,
        updated_at=row.updated_at,
        started_at=row.started_at,
        completed_at=row.finished_at,
    )


def render_published(row: Evaluation) -> EvaluationAnswer:
    """For others than its team: what was measured, and nothing of how it was set up or went wrong."""
    whole = render_evaluation(row)
    hidden = {
        "eval_config": None,
        "error_message": None,
        "error_code": None,
        "error_detail": {},
        "run_id": None,
        "group_id": None,
    }
    shown = {name: found for name, found in whole.metadata.items() if name in PUBLISHED_METADATA}
    return whole.model_copy(update={**hidden, "metadata": shown})


class LeaderboardRow(Answer):
    """One team's evaluations of one model. `score`, its interval at 95 % (null below two examples), counts and costs are those of
    the best one; `mean_score` is over all `evaluations_count`. `is_hosted`: this installation ran it; otherwise the score is its
    team's word. `cost_per_sample_usd` is null where nobody knows it."""

    model: str
    team: str
    score: float
    ci_low: float | None
    ci_high: float | None
    samples_count: int
    cost_per_sample_usd: float | None
    mean_score: float
    evaluations_count: int
    version: str | None
    is_hosted: bool
    is_own: bool
    is_public: bool
    evaluation_id: str
    evaluated_at: datetime


class Leaderboard(Answer):
    """The best score first."""

    data: list[LeaderboardRow]
