"""The datasets of a run, from its orders to rows that can be taken.

Knows how the files come to this machine and that they are those of the orders. Refuses to know what a row means. A file lies in a
temporary place that ends with the process.
"""

import asyncio
import hashlib
import tempfile
from typing import Any, BinaryIO

from trainer.contracts.catalogue import model_folder
from trainer.contracts.datasets import DatasetRefused, DatasetSpec, ImportReport
from trainer.contracts.events import Component, FailureCode
from trainer.contracts.run_config import DatasetRef, RunConfig
from trainer.inference.text import TextCodec
from trainer.orchestrator.attempt.endings import failed
from trainer.orchestrator.datasets.feed import DatasetFeed
from trainer.orchestrator.datasets.rendering import RowRenderer
from trainer.orchestrator.datasets.rows import DatasetRows
from trainer.orchestrator.workplace import Workplace

ROWS_DROPPED = "dataset_rows_dropped"


class Datasets:
    """`feed` is what the loop takes rows from, once `load` is done."""

    def __init__(self, place: Workplace, config: RunConfig):
        self._place = place
        self._config = config
        self._rows: list[DatasetRows] = []
        self.feed = DatasetFeed(config, self._rows)

    async def load(self) -> None:
        """Bring every file here and find the rows that the model takes. Raises AttemptOver where too few are left."""
        specs, refs = self._place.spec.datasets, self._config.datasets
        if len(specs) != len(refs):
            raise failed(FailureCode.INTERNAL, f"{len(refs)} datasets came with {len(specs)} files")
        if not refs:
            return
        model = self._place.spec.base_model
        codec = await asyncio.to_thread(TextCodec, model_folder(model.tokenizer))
        renderer = RowRenderer(codec, context_tokens=model.context_tokens)
        for index, (name, ref, spec) in enumerate(zip(self._config.dataset_names(), refs, specs, strict=True)):
            self._place.phase(f"reading dataset {name}", Component.ORCHESTRATOR)
            file = await self._fetch(index, spec)
            self._rows.append(await self._checked(name, ref, spec, file, renderer))

    async def _fetch(self, index: int, spec: DatasetSpec) -> BinaryIO:
        content = await self._place.control.dataset(index)
        if hashlib.sha256(content).hexdigest() != spec.sha256:
            raise failed(FailureCode.INTERNAL, f"the file of dataset {spec.name} is not the one that was uploaded")
        # Unnamed: nobody else can open it, and it is gone with this process.
        file = tempfile.TemporaryFile()  # noqa: SIM115
        file.write(content)
        return file

    async def _checked(self, name: str, ref: DatasetRef, spec: DatasetSpec, file: BinaryIO, renderer: RowRenderer) -> DatasetRows:
        rows = DatasetRows(name, ref, spec.kind, file, renderer, seed=self._config.seed)
        try:
            report = await asyncio.to_thread(rows.check)
        except DatasetRefused as refused:
            raise failed(FailureCode.DATASET_REFUSED, f"dataset {name}: {refused}", **_facts(name, refused.report)) from None
        self._tell(name, report)
        return rows

    def _tell(self, name: str, report: ImportReport) -> None:
        self._place.reporter.log(f"dataset {name}: {report.words()}", level="warning" if report.dropped else "info")
        if report.dropped:
            message = f"dataset {name}: {report.kept} of {report.rows} rows are kept; left out: {report.reasons_in_words()}"
            self._place.reporter.incident(ROWS_DROPPED, message)
        for problem in report.problems:
            self._place.reporter.log(f"dataset {name}, line {problem.line}: {problem.reason}", level="warning")


def _facts(name: str, report: ImportReport | None) -> dict[str, Any]:
    """What a refusal says for machines: counts, and the dropped rows by reason."""
    counts = report.model_dump(include={"rows", "kept", "dropped", "reasons"}) if report else {}
    return {"dataset": name, **counts}
