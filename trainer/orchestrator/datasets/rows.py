"""The rows of one dataset in the run's order: shuffled anew each epoch from the run's seed, from any position on.

Knows a file of JSON lines on this machine's disk and which of its rows the model takes. Refuses to know batches. Memory holds the
places of the rows, never the rows: one is read and rendered when it is taken, and once before the first step, so that what cannot
be learnt is known, and told, before anything is paid for.
"""

from array import array
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from trainer.contracts.datasets import (
    LINE_BYTES_MAX,
    DatasetKind,
    ImportReport,
    RowRefused,
    check_report,
    parse_row,
    read_rows,
    report_of,
)
from trainer.contracts.run_config import DatasetRef
from trainer.orchestrator.datasets.rendering import RowRenderer, RowStream
from trainer.orchestrator.environments.task_order import TaskOrder


class TakenRow(NamedTuple):
    """`line` counts from 1 in the file, `epoch` from 0."""

    line: int
    epoch: int
    streams: list[RowStream]


class DatasetRows:
    """`position` counts the rows that were taken since the run began: the cursor that survives a restart."""

    def __init__(self, name: str, ref: DatasetRef, kind: DatasetKind, file: BinaryIO, renderer: RowRenderer, *, seed: int):
        self.name = name
        self.ref = ref
        self.position = 0
        self.dropped = 0
        self.tokens_max = 0
        """Of one row."""
        self._kind = kind
        self._file = file
        self._renderer = renderer
        self._seed = seed
        self._offsets = array("Q")
        self._lines = array("L")
        self._order: TaskOrder | None = None

    def check(self) -> ImportReport:
        """Find the rows that the model takes. Raises DatasetRefused where too few are left."""
        report = report_of(self._fitting())
        check_report(report, self.ref.dropped_max)
        self.dropped = report.dropped
        if self.ref.shuffle:
            self._order = TaskOrder(seed=self._seed, environment=f"dataset {self.name}", tasks_count=self.rows_count)
        return report

    @property
    def rows_count(self) -> int:
        return len(self._offsets)

    @property
    def left(self) -> int | None:
        """Rows that are still to be taken; None where they are taken again and again."""
        return None if (rows := self.rows_in_all) is None else max(0, rows - self.position)

    @property
    def rows_in_all(self) -> int | None:
        """Rows from the first step on, each as often as it has epochs."""
        return None if self.ref.epochs is None else self.ref.epochs * self.rows_count

    @property
    def epochs_done(self) -> float:
        return self.position / self.rows_count

    def next(self) -> TakenRow:
        """The next row of the order."""
        epoch, offset = divmod(self.position, self.rows_count)
        index = offset if self._order is None else self._order.index_at(self.position)
        self.position += 1
        self._file.seek(self._offsets[index])
        row = parse_row(self._file.readline(LINE_BYTES_MAX + 1))
        return TakenRow(self._lines[index], epoch, self._renderer.streams(row))

    def _fitting(self) -> Iterator[tuple[int, str]]:
        """(line, why it is dropped) of each row; the places of the others are kept."""
        self._file.seek(0)
        for line in read_rows(self._file, self._kind):
            reason = line.reason
            try:
                if line.row is not None:
                    streams = self._renderer.streams(line.row)
                    self.tokens_max = max(self.tokens_max, sum(len(stream.token_ids) for stream in streams))
                    self._offsets.append(line.offset)
                    self._lines.append(line.number)
            except RowRefused as refused:
                reason = str(refused)
            yield line.number, reason
