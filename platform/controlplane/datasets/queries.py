"""Read models of datasets: who still needs one. Writes nothing."""

from controlplane.datasets.models import Dataset
from controlplane.runs.models import Run
from trainer.contracts.events import TERMINAL_STATES


def runs_learning_from(dataset: Dataset) -> list[Run]:
    """The runs that name it and are not over, oldest first: each may read it at any moment."""
    rows = Run.objects.filter(team_id=dataset.team_id, deleted_at__isnull=True).exclude(state__in=TERMINAL_STATES)
    named = [{"id": dataset.name, "sha256": dataset.sha256}]
    return list(rows.filter(config__datasets__contains=named).order_by("created_at", "id"))
