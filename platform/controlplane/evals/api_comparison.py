"""HTTP face of comparisons: parse, door, query, render. No rule lives here."""

from dataclasses import asdict

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from controlplane.core.pagination import list_page
from controlplane.core.schemas import query_parameters, read_query, render
from controlplane.core.views import ApiView
from controlplane.evals import comparison, quality
from controlplane.evals.access import access_evaluations
from controlplane.evals.models import Evaluation
from controlplane.evals.schemas import ScoreStatistics, render_evaluation
from controlplane.evals.schemas_comparison import (
    ComparedEvaluation,
    ComparedExample,
    ComparedExampleAnswer,
    ComparedExampleQuery,
    ComparedExamplesPage,
    ComparedExamplesQuery,
    ComparisonAnswer,
    ComparisonQuery,
    ExampleAnswers,
    PairedAnswer,
    QualityAnswer,
)
from controlplane.evals.scores import score_statistics
from controlplane.teams.actors import actor_in


class ComparisonView(ApiView):
    scope = "evals"

    @extend_schema(operation_id="evaluations_compare", parameters=query_parameters(ComparisonQuery), responses=ComparisonAnswer)
    def get(self, request: Request) -> Response:
        """Evaluations of one environment side by side: quality, cost and latency of each, and a paired test against the first."""
        ids = read_query(request, ComparisonQuery).ids
        rows = access_evaluations(actor_in(request), ids.split(","))
        comparison.check_comparable(rows)
        tests = comparison.against_first([comparison.means_of(row) for row in rows])
        pairs = [PairedAnswer.of(row.id, found) for row, found in zip(rows[1:], tests, strict=True) if found]
        url = f"{settings.PUBLIC_ORIGIN}/evaluations/compare?ids={ids}"
        answer = ComparisonAnswer(evaluations=_compared(rows), pairs=pairs, notes=comparison.notes_on(rows), viewer_url=url)
        return render(answer)


class ComparedExamplesView(ApiView):
    scope = "evals"

    @extend_schema(
        operation_id="evaluations_compare_examples",
        parameters=query_parameters(ComparedExamplesQuery),
        responses=ComparedExamplesPage,
    )
    def get(self, request: Request) -> Response:
        """The examples of a comparison, the worst regression first."""
        query = read_query(request, ComparedExamplesQuery)
        rows = access_evaluations(actor_in(request), query.ids.split(","))
        comparison.check_comparable(rows)
        means = [comparison.means_of(row) for row in rows]
        found = comparison.aligned(means, verdict=query.verdict, best_first=query.order == "improvement")
        page, following = list_page(found, query, lambda row: row.example, of=f"comparison:{query.ids}:{query.order}")
        examples = [row.example for row in page]
        titles = {name: title for row in reversed(rows) for name, title in comparison.titles_of(row, examples).items()}
        items = [ComparedExample.of(row, titles.get(row.example, "")) for row in page]
        return render(ComparedExamplesPage(items=items, next_cursor=following, total=len(found)))


class ComparedExampleView(ApiView):
    scope = "evals"

    @extend_schema(
        operation_id="evaluations_compare_example",
        parameters=query_parameters(ComparedExampleQuery),
        responses=ComparedExampleAnswer,
    )
    def get(self, request: Request) -> Response:
        """One example: what each evaluation's model answered."""
        query = read_query(request, ComparedExampleQuery)
        rows = access_evaluations(actor_in(request), query.ids.split(","))
        answers = [
            ExampleAnswers(evaluation_id=row.id, model_name=row.model_name, samples=comparison.answers_of(row, query.example))
            for row in rows
        ]
        return render(ComparedExampleAnswer(example=query.example, evaluations=answers))


def _compared(rows: list[Evaluation]) -> list[ComparedEvaluation]:
    statistics, costs = [score_statistics(row) for row in rows], quality.costs_of(rows)
    means = [found.mean if found else None for found in statistics]
    seconds = [quality.median_duration_s(row) for row in rows]
    dollars = [costs[row.id].amount_microusd / 1e6 if row.id in costs else None for row in rows]
    each = [quality.per_sample_usd(row, costs.get(row.id)) for row in rows]
    cheap = quality.unbeaten(list(zip(means, each, strict=True)))
    fast = quality.unbeaten(list(zip(means, seconds, strict=True)))
    return [
        ComparedEvaluation(
            evaluation=render_evaluation(row),
            statistics=ScoreStatistics.model_validate(asdict(found)) if found else None,
            quality=QualityAnswer(
                mean=means[index],
                cost_usd=dollars[index],
                cost_per_sample_usd=each[index],
                cost_source=costs[row.id].source if row.id in costs else None,
                duration_median_s=seconds[index],
                best_for_cost=cheap[index],
                best_for_time=fast[index],
            ),
        )
        for index, (row, found) in enumerate(zip(rows, statistics, strict=True))
    ]
