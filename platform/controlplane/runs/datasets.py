"""The datasets that a run learns from: pinned to their content when it is asked for, read by whoever holds it.

Knows the doors of the datasets app. Refuses to know what a row means.
"""

from controlplane.core.errors import Conflict, Invalid, NotFound
from controlplane.datasets.access import access_dataset, dataset_of_team
from controlplane.datasets.models import Dataset
from controlplane.runs.models import Run
from controlplane.teams.actors import Actor
from trainer.contracts.datasets import DatasetSpec
from trainer.contracts.run_config import DatasetRef, RunConfig


def pin_datasets(actor: Actor, config: RunConfig) -> RunConfig:
    """Each reference by the dataset's name and content. Raises Invalid naming the one that is wrong."""
    pinned = [_pinned(actor, index, ref) for index, ref in enumerate(config.datasets)]
    return config.model_copy(update={"datasets": pinned})


def hold_datasets(run: Run) -> None:
    """Inside the transaction that puts a run into the queue: nobody deletes what it learns from until that has ended. Raises
    Conflict where somebody has."""
    for ref in sorted(RunConfig.model_validate(run.config).datasets, key=lambda ref: ref.id):
        try:
            _row(run, ref, lock=True)
        except NotFound:
            raise Conflict(
                f"the dataset '{ref.id}' that the run learns from was deleted",
                hint="Upload the same file under the same name: `prime datasets push FILE --name NAME`.",
            ) from None


def dataset_specs(run: Run) -> list[DatasetSpec]:
    """One entry per dataset of the run."""
    rows = [_row(run, ref) for ref in RunConfig.model_validate(run.config).datasets]
    return [
        DatasetSpec.model_validate(
            {"dataset_id": row.id, "name": row.name, "kind": row.kind, "sha256": row.sha256, "size_bytes": row.size_bytes}
        )
        for row in rows
    ]


def dataset_of_run(run: Run, index: int) -> Dataset:
    """What the holder of `run` may read. Raises NotFound."""
    refs = RunConfig.model_validate(run.config).datasets
    if index >= len(refs):
        raise NotFound(f"the run has no dataset {index}")
    return _row(run, refs[index])


def _pinned(actor: Actor, index: int, ref: DatasetRef) -> DatasetRef:
    loc = ("body", "datasets", index)
    try:
        row = access_dataset(actor, ref.id)
    except NotFound as error:
        raise Invalid((*loc, "id"), error.detail, hint=error.hint) from None
    if ref.sha256 not in (None, row.sha256):
        raise Invalid((*loc, "sha256"), f"the dataset {row.name} has another content, {row.sha256}; leave the field out")
    return ref.model_copy(update={"id": row.name, "sha256": row.sha256})


def _row(run: Run, ref: DatasetRef, *, lock: bool = False) -> Dataset:
    return dataset_of_team(run.team_id, ref.id, ref.sha256 or "", lock=lock)
