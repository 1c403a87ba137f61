"""The doors of datasets: the only place that finds one by id or name, always for an actor or for a run of the same team."""

from django.db.models import Q, QuerySet

from controlplane.datasets.errors import no_dataset
from controlplane.datasets.models import Dataset
from controlplane.teams.actors import Actor


def access_dataset(actor: Actor, name: str, *, lock: bool = False) -> Dataset:
    """A checked dataset of the actor's team, by name or id."""
    rows = checked_datasets(actor.team_id).filter(Q(name=name) | Q(id=name))
    found = (rows.select_for_update() if lock else rows).first()
    if found is None:
        raise no_dataset(name)
    return found


def access_upload(actor: Actor, dataset_id: str) -> Dataset:
    """A dataset of the actor's team, checked or still on its way."""
    found = Dataset.objects.filter(team=actor.team, id=dataset_id).first()
    if found is None:
        raise no_dataset(dataset_id)
    return found


def dataset_of_team(team_id: str, name: str, sha256: str, *, lock: bool = False) -> Dataset:
    """What the configuration of a run of that team names, pinned when the run was made."""
    rows = checked_datasets(team_id).filter(name=name, sha256=sha256)
    found = (rows.select_for_update() if lock else rows).first()
    if found is None:
        raise no_dataset(name)
    return found


def checked_datasets(team_id: str) -> QuerySet[Dataset]:
    return Dataset.objects.filter(team_id=team_id, checked_at__isnull=False)
