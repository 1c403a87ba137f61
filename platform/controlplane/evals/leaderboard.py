"""The models that were evaluated on one environment, the best first: a row for each team and model, with its best evaluation.

A reader sees their own team's evaluations and those that other teams have published (`access.ranked_evaluations`). A hosted score
was measured here; a pushed one is its team's word, and says so. Refuses to compute statistics: an evaluation that has ended has
them.
"""

from typing import Any

from django.db.models import Avg, Count, F, QuerySet, Window
from django.db.models.functions import RowNumber

from controlplane.core.tenancy import acting_as_system
from controlplane.evals.access import ranked_evaluations
from controlplane.evals.models import Evaluation
from controlplane.evals.quality import Cost, costs_of, per_sample_usd
from controlplane.evals.schemas import LeaderboardRow
from controlplane.hub.models import Environment
from controlplane.teams.actors import Actor

ROWS_MAX = 100


def leaderboard(actor: Actor | None, environment: Environment) -> list[LeaderboardRow]:
    """Among equals the newest."""
    with acting_as_system():
        best = list(_best(ranked_evaluations(actor, environment))[:ROWS_MAX])
        costs = costs_of(best)
        return [_row(actor, evaluation, costs.get(evaluation.id)) for evaluation in best]


def _best(rows: QuerySet[Evaluation]) -> QuerySet[Evaluation]:
    """`mean_score` and `evaluations_count` are over all of the team's evaluations of the model."""
    each: dict[str, Any] = {"partition_by": [F("team_id"), F("model_name")]}
    place = Window(RowNumber(), order_by=[F("avg_score").desc(), F("created_at").desc()], **each)
    counted = rows.annotate(
        place=place, mean_score=Window(Avg("avg_score"), **each), evaluations_count=Window(Count("id"), **each)
    )
    return counted.filter(place=1).select_related("team").order_by("-avg_score", "-created_at")


def _row(actor: Actor | None, evaluation: Evaluation, cost: Cost | None) -> LeaderboardRow:
    return LeaderboardRow(
        model=evaluation.model_name,
        team=evaluation.team.slug,
        score=evaluation.avg_score or 0.0,
        ci_low=evaluation.ci_low,
        ci_high=evaluation.ci_high,
        samples_count=evaluation.samples_count,
        cost_per_sample_usd=per_sample_usd(evaluation, cost),
        mean_score=evaluation.mean_score,  # type: ignore[attr-defined]
        evaluations_count=evaluation.evaluations_count,  # type: ignore[attr-defined]
        version=evaluation.metadata.get("version"),
        is_hosted=evaluation.is_hosted,
        is_own=actor is not None and evaluation.team_id == actor.team_id,
        is_public=evaluation.is_public,
        evaluation_id=evaluation.id,
        evaluated_at=evaluation.finished_at or evaluation.updated_at,
    )
