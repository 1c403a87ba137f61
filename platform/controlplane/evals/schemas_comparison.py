"""Comparisons and quality on the wire. Knows spelling only."""

from typing import Annotated, Any, Literal

from pydantic import Field

from controlplane.core.pagination import CursorQuery
from controlplane.core.schemas import Answer, Query
from controlplane.evals.comparison import COMPARED_MAX, AlignedExample, Verdict
from controlplane.evals.models import EXAMPLE_LENGTH_MAX
from controlplane.evals.schemas import EvaluationAnswer, ScoreStatistics
from trainer.contracts.eval_statistics import Paired

IDS_PATTERN = rf"^[a-z0-9]{{25}}(,[a-z0-9]{{25}}){{0,{COMPARED_MAX - 1}}}$"


class ComparisonQuery(Query):
    """`ids`: up to eight evaluations, with commas between; the first is what the others are measured against."""

    ids: Annotated[str, Field(pattern=IDS_PATTERN)]


class ComparedExamplesQuery(CursorQuery):
    """`order`: the worst regression first, or the best improvement."""

    ids: Annotated[str, Field(pattern=IDS_PATTERN)]
    verdict: Verdict | None = None
    order: Literal["regression", "improvement"] = "regression"


class ComparedExampleQuery(Query):
    ids: Annotated[str, Field(pattern=IDS_PATTERN)]
    example: Annotated[str, Field(min_length=1, max_length=EXAMPLE_LENGTH_MAX)]


class QualityAnswer(Answer):
    """What quality costs. `cost_source` is `bill` (what we charged) or `prices` (usage times the prices that were stated); costs
    are null where neither is known. `best_for_cost` and `best_for_time`: no other of the evaluations is at least as good and as
    cheap, or as fast, and better in one."""

    mean: float | None
    cost_usd: float | None
    cost_per_sample_usd: float | None
    cost_source: Literal["bill", "prices"] | None
    duration_median_s: float | None
    best_for_cost: bool
    best_for_time: bool


class ComparedEvaluation(Answer):
    evaluation: EvaluationAnswer
    statistics: ScoreStatistics | None
    quality: QualityAnswer


class PairedAnswer(Answer):
    """An evaluation less the first, over the `examples` that both have rewards for, each weighing the same. The interval is at
    95 %, `p_value` two-sided (paired t-test by example); both null below two examples."""

    evaluation_id: str
    examples: int
    difference: float
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    improved: int
    regressed: int
    same: int

    @classmethod
    def of(cls, evaluation_id: str, found: Paired) -> "PairedAnswer":
        return cls(
            evaluation_id=evaluation_id,
            examples=found.examples,
            difference=found.difference.mean,
            ci_low=found.difference.low,
            ci_high=found.difference.high,
            p_value=found.p_value,
            improved=found.improved,
            regressed=found.regressed,
            same=found.same,
        )


class ComparisonAnswer(Answer):
    """`pairs` has an entry for each evaluation but the first that shares an example with it."""

    evaluations: list[ComparedEvaluation]
    pairs: list[PairedAnswer]
    notes: list[str]
    viewer_url: str


class ComparedExample(Answer):
    """`means` and `counts` (of rewards) in the order of the evaluations; a mean is null where there is no reward. `change` is the
    worst of the others less the first. `title`: what the example asks, in a few words."""

    example: str
    title: str
    means: list[float | None]
    counts: list[int]
    change: float | None
    verdict: Verdict

    @classmethod
    def of(cls, row: AlignedExample, title: str) -> "ComparedExample":
        return cls(example=row.example, title=title, means=row.means, counts=row.counts, change=row.change, verdict=row.verdict)


class ComparedExamplesPage(Answer):
    items: list[ComparedExample]
    next_cursor: str | None
    total: int


class ExampleAnswers(Answer):
    """The first few samples of the example in one evaluation, as `/samples` has them."""

    evaluation_id: str
    model_name: str
    samples: list[dict[str, Any]]


class ComparedExampleAnswer(Answer):
    example: str
    evaluations: list[ExampleAnswers]
