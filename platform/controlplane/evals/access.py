"""The only place that looks an evaluation up by id. Foreign and absent look the same, but for what its team has published."""

from django.db.models import Q, QuerySet

from controlplane.core.errors import NotFound
from controlplane.core.tenancy import acting_as_system
from controlplane.evals.models import EvalStatus, Evaluation
from controlplane.hub.access import visible_environments
from controlplane.hub.models import Environment
from controlplane.teams.access import enter_team_of
from controlplane.teams.actors import Actor

PUBLISHED = Q(is_public=True, status=EvalStatus.COMPLETED, deleted_at__isnull=True)


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


def readable_evaluation(actor: Actor, evaluation_id: str) -> tuple[Evaluation, bool]:
    """An evaluation to read, and whether it is the actor's own: otherwise one that was published, has been completed, and whose
    environments the actor may see. Read what belongs to it as its team (`acting_for`)."""
    try:
        return access_evaluation(actor, evaluation_id), True
    except NotFound:
        with acting_as_system():
            found = Evaluation.objects.filter(PUBLISHED, id=evaluation_id).first()
            if found is None or not _sees_environments(actor, found):
                raise
            return found, False


def _sees_environments(actor: Actor, evaluation: Evaluation) -> bool:
    ids = set(evaluation.environment_ids)
    return bool(ids) and visible_environments(actor).filter(id__in=ids).count() == len(ids)


def ranked_evaluations(actor: Actor | None, environment: Environment) -> QuerySet[Evaluation]:
    """Unevaluated: read it within `acting_as_system`. Completed evaluations of this environment alone that have a score: the
    acting team's, and those that were published. The actor may see the environment (`hub.access`)."""
    shown = Q(is_public=True) | Q(team_id=actor.team_id) if actor else Q(is_public=True)
    completed = {"status": EvalStatus.COMPLETED, "deleted_at__isnull": True, "avg_score__isnull": False}
    return Evaluation.objects.filter(shown, environment_ids=[environment.id], **completed)


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


def weights_in_use() -> set[str]:
    """For the sweep alone: artifact paths that evaluations read from. One that ended early may go on."""
    open_ones = Evaluation.objects.exclude(status=EvalStatus.COMPLETED).filter(is_hosted=True, deleted_at__isnull=True)
    used: set[str] = set()
    for served, seats in open_ones.values_list("served_model", "seats").iterator():
        used |= {model["adapter_path"] for model in (served, *seats.values()) if model and model.get("adapter_path")}
    return used
