"""The models that a team has evaluated on one environment, the best first: one row per model, its best evaluation.

Evaluations are a team's own, so that each team sees a leaderboard of its own work.
"""

from controlplane.evals.models import EvalStatus, Evaluation
from controlplane.evals.schemas import LeaderboardRow
from controlplane.hub.models import Environment
from controlplane.teams.actors import Actor

EVALUATIONS_MAX = 1000
MODELS_MAX = 100


def leaderboard(actor: Actor, environment: Environment) -> list[LeaderboardRow]:
    """Completed evaluations of this environment alone that have a score; among equals the newest."""
    rows = Evaluation.objects.filter(
        team=actor.team,
        status=EvalStatus.COMPLETED,
        environment_ids=[environment.id],
        avg_score__isnull=False,
        deleted_at__isnull=True,
    )
    best: dict[str, Evaluation] = {}
    for row in rows.order_by("-created_at", "-id")[:EVALUATIONS_MAX]:
        known = best.get(row.model_name)
        if known is None or (row.avg_score or 0.0) > (known.avg_score or 0.0):
            best[row.model_name] = row
    ranked = sorted(best.values(), key=lambda row: -(row.avg_score or 0.0))
    return [
        LeaderboardRow(
            model=row.model_name,
            score=row.avg_score,
            samples_count=row.samples_count,
            is_hosted=row.is_hosted,
            evaluation_id=row.id,
            evaluated_at=row.finished_at or row.updated_at,
        )
        for row in ranked[:MODELS_MAX]
    ]
