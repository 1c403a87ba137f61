"""The only place that looks an evaluation up by id. Foreign and absent look the same."""

from controlplane.core.errors import NotFound
from controlplane.evals.models import Evaluation
from controlplane.teams.access import enter_team_of
from controlplane.teams.actors import Actor


def access_evaluation(actor: Actor, evaluation_id: str, *, lock: bool = False) -> Evaluation:
    """An evaluation of the actor's team, or of another team of the same user."""
    rows = Evaluation.objects.filter(id=evaluation_id, deleted_at__isnull=True)
    locking = rows.select_for_update(no_key=True) if lock else rows
    found = locking.filter(team=actor.team).first()
    if found is None and (team_id := enter_team_of(actor, rows)):
        found = locking.filter(team_id=team_id).first()
    if found is None:
        raise _absent(evaluation_id)
    return found


def access_evaluations(actor: Actor, ids: list[str]) -> list[Evaluation]:
    """Several, in the order of `ids`, all of the team of the first: a request acts for one team."""
    team_id = access_evaluation(actor, ids[0]).team_id
    found = {row.id: row for row in Evaluation.objects.filter(id__in=ids, deleted_at__isnull=True, team_id=team_id)}
    for evaluation_id in ids:
        if evaluation_id not in found:
            raise _absent(evaluation_id)
    return [found[evaluation_id] for evaluation_id in ids]


def access_group(actor: Actor, group_id: str) -> None:
    """Raises NotFound for a group that the actor's team has not."""
    if not Evaluation.objects.filter(team=actor.team, group_id=group_id, deleted_at__isnull=True).exists():
        raise NotFound(f"There is no group '{group_id}'.", hint="Leave group_id out: several models make a group of their own.")


def _absent(evaluation_id: str) -> NotFound:
    return NotFound(f"There is no evaluation '{evaluation_id}'.", hint="`prime eval list` shows yours.")


def lock_evaluation(evaluation_id: str) -> Evaluation | None:
    """For leased work alone, which the attempt token has tied to this evaluation already."""
    return Evaluation.objects.select_for_update(no_key=True).filter(id=evaluation_id, deleted_at__isnull=True).first()
