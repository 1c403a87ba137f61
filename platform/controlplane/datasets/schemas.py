"""Bodies of the datasets API. Knows spellings; decides nothing."""

from datetime import datetime
from typing import Annotated, Self

from pydantic import Field

from controlplane.core.schemas import Answer, Body
from controlplane.datasets.models import NAME_LENGTH_MAX, Dataset
from trainer.contracts.base import Sha256
from trainer.contracts.datasets import FILE_BYTES_MAX, DatasetKind, ImportReport


class DeclareDataset(Body):
    """A file of JSON lines that is about to be sent. It is refused when more than `dropped_max` of its rows are no good."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=NAME_LENGTH_MAX)]
    sha256: Sha256
    size_bytes: Annotated[int, Field(ge=1, le=FILE_BYTES_MAX)]
    dropped_max: Annotated[float, Field(ge=0, le=1)] = 0.01


class DatasetDeclared(Answer):
    """`upload_url` is a signed address to PUT the file to; null when it is there already."""

    id: str
    upload_url: str | None


class DatasetRow(Answer):
    id: str
    name: str
    kind: DatasetKind
    sha256: str
    size_bytes: int
    rows: int
    kept: int
    dropped: int
    created_at: datetime

    @classmethod
    def of(cls, row: Dataset) -> Self:
        report = ImportReport.model_validate(row.report)
        return cls(
            id=row.id,
            name=row.name,
            kind="text" if row.kind == "text" else "chat",
            sha256=row.sha256,
            size_bytes=row.size_bytes,
            rows=report.rows,
            kept=report.kept,
            dropped=report.dropped,
            created_at=row.created_at,
        )


class DatasetList(Answer):
    datasets: list[DatasetRow]
    total: int


class DatasetDetail(Answer):
    dataset: DatasetRow
    report: ImportReport

    @classmethod
    def of(cls, row: Dataset) -> Self:
        return cls(dataset=DatasetRow.of(row), report=ImportReport.model_validate(row.report))
