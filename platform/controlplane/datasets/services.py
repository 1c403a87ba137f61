"""Writes to datasets. A file is judged before anything of it is kept: a refused one leaves neither row nor object behind.

Knows uploads and reports. Refuses to know tokenizers: whether a row fits a model, the run that learns from it finds out.
"""

import tempfile
from typing import BinaryIO

from django.db import transaction

from controlplane.audit.services import record
from controlplane.core.clock import DatabaseNow
from controlplane.core.errors import Invalid, NotUploaded
from controlplane.core.objects import MissingObject, content_key, store
from controlplane.core.objects.keys import chunks
from controlplane.core.problems import FieldProblem
from controlplane.datasets.access import access_dataset
from controlplane.datasets.errors import DatasetExists, DatasetInUse, no_dataset
from controlplane.datasets.models import Dataset
from controlplane.datasets.queries import runs_learning_from
from controlplane.datasets.schemas import DeclareDataset
from controlplane.teams.actors import Actor
from trainer.contracts.base import new_id
from trainer.contracts.datasets import (
    DatasetKind,
    DatasetRefused,
    ImportReport,
    check_report,
    kind_of,
    read_rows,
    report_of,
)

UPLOAD_EXPIRES_S = 3600
FILE = ("body", "file")


def declare_dataset(actor: Actor, body: DeclareDataset) -> tuple[Dataset, str | None]:
    """Announce a file. Returns its row with a signed address to PUT it to, or None where that content has that name already.
    Whoever announces a name again replaces an upload of it that never ended."""
    with transaction.atomic():
        known = Dataset.objects.select_for_update().filter(team=actor.team, name=body.name).first()
        if known is not None and known.checked_at is not None:
            if known.sha256 != body.sha256:
                raise DatasetExists(body.name)
            return known, None
        if known is not None:
            known.delete()
        dataset_id = new_id()
        made = Dataset.objects.create(
            id=dataset_id,
            team=actor.team,
            created_by=actor.user,
            object_key=f"datasets/uploads/{dataset_id}",
            **body.model_dump(),
        )
    return made, store().signed_put_url(made.object_key, UPLOAD_EXPIRES_S, body.size_bytes)


def finalize_dataset(actor: Actor, dataset: Dataset) -> Dataset:
    """Judge an uploaded file line by line and keep it. Twice is once. Raises Invalid naming lines and reasons."""
    if dataset.checked_at is not None:
        return dataset
    with tempfile.TemporaryFile() as file:
        _copy(dataset, file)
        file.seek(0)
        try:
            kind, report = inspect_file(file, dropped_max=dataset.dropped_max)
        except DatasetRefused as refused:
            _discard(dataset)
            raise _answer(refused) from None
        file.seek(0)
        uploaded, kept = dataset.object_key, _kept_key(dataset.team_id, dataset.sha256)
        # What was judged is what is kept: the signed address may have been written to since.
        if store().put(kept, file).sha256 != dataset.sha256:
            raise _changed(dataset)
    with transaction.atomic():
        fields = {"kind": kind, "report": report.model_dump(mode="json"), "object_key": kept, "checked_at": DatabaseNow()}
        if not Dataset.objects.filter(id=dataset.id, checked_at__isnull=True).update(**fields):
            raise no_dataset(dataset.id)
        record(actor, "dataset.uploaded", kind="dataset", object_id=dataset.id, detail={"name": dataset.name, **_counts(report)})
    store().delete(uploaded)
    dataset.refresh_from_db()
    return dataset


def delete_dataset(actor: Actor, name: str) -> None:
    """Take a dataset away for good; its name is free again. What runs have learnt from it stays. Raises NotFound, and
    DatasetInUse naming the runs that are not over."""
    with transaction.atomic():
        dataset = access_dataset(actor, name, lock=True)
        if runs := runs_learning_from(dataset):
            raise DatasetInUse(dataset.name, runs)
        detail = {"name": dataset.name, "sha256": dataset.sha256}
        record(actor, "dataset.deleted", kind="dataset", object_id=dataset.id, detail=detail)
        Dataset.objects.filter(id=dataset.id).delete()
    _drop_unnamed(dataset.team_id, dataset.sha256)


def _answer(refused: DatasetRefused) -> Invalid:
    """422 naming each line."""
    answer = Invalid(FILE, str(refused), hint="Nothing was kept. Correct the lines, or allow more of them with dropped_max.")
    problems = refused.report.problems if refused.report else []
    answer.problems += [FieldProblem((*FILE, problem.line), problem.reason) for problem in problems]
    return answer


def inspect_file(file: BinaryIO, *, dropped_max: float) -> tuple[DatasetKind, ImportReport]:
    """What kind of rows a file holds, and what becomes of each. Raises DatasetRefused."""
    kind: DatasetKind = "chat"
    outcomes: list[tuple[int, str]] = []
    for line in read_rows(file):
        kind = kind_of(line.row) if line.row is not None else kind
        outcomes.append((line.number, line.reason))
    report = report_of(outcomes)
    check_report(report, dropped_max)
    return kind, report


def _copy(dataset: Dataset, file: BinaryIO) -> None:
    """The uploaded object on this machine's disk, digest and size compared with the declared ones."""
    stored = store().stat(dataset.object_key)
    if stored is None:
        raise NotUploaded
    if (stored.sha256, stored.size_bytes) != (dataset.sha256, dataset.size_bytes):
        raise _changed(dataset)
    try:
        with store().open(dataset.object_key) as stream:
            for chunk in chunks(stream):
                file.write(chunk)
    except MissingObject:
        raise no_dataset(dataset.id) from None


def _changed(dataset: Dataset) -> Invalid:
    _discard(dataset)
    return Invalid(FILE, "what was uploaded is not the file that was declared (sha256, size_bytes)")


def _discard(dataset: Dataset) -> None:
    store().delete(dataset.object_key)
    Dataset.objects.filter(id=dataset.id, checked_at__isnull=True).delete()
    _drop_unnamed(dataset.team_id, dataset.sha256)


def _kept_key(team_id: str, sha256: str) -> str:
    """Two names of one content share an object."""
    return content_key(f"datasets/{team_id}", sha256, ".jsonl")


def _drop_unnamed(team_id: str, sha256: str) -> None:
    """The object goes with the last row of its digest. One that is only announced counts: its file may be kept any moment."""
    if not Dataset.objects.filter(team_id=team_id, sha256=sha256).exists():
        store().delete(_kept_key(team_id, sha256))


def _counts(report: ImportReport) -> dict[str, int]:
    return {"rows": report.rows, "dropped": report.dropped}
