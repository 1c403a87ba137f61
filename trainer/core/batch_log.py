"""The batch log: every batch that became a step, as zstd JSON, written before the version it led to.

Knows files by step. Refuses to know gradients. It is the write-ahead log of a run: what is in it is a step, and replaying it
from the start, or from a checkpoint, gives the adapter again.
"""

from collections.abc import Iterator
from pathlib import Path

import zstandard

from trainer.contracts.adapters import batch_log_path
from trainer.contracts.samples import TrainBatch
from trainer.core.durable import write_file

BATCH_BYTES_MAX = 2**31
"""Of one batch, decompressed."""


class BatchLog:
    def __init__(self, root: Path) -> None:
        self.root = root

    def append(self, batch: TrainBatch) -> None:
        data = batch.model_dump_json(exclude_none=True).encode()
        write_file(self._path(batch.run_id, batch.step), zstandard.compress(data, 3))

    def read(self, run_id: str, step: int) -> TrainBatch | None:
        path = self._path(run_id, step)
        if not path.exists():
            return None
        data = zstandard.ZstdDecompressor().decompress(path.read_bytes(), max_output_size=BATCH_BYTES_MAX)
        return TrainBatch.model_validate_json(data)

    def after(self, run_id: str, step: int) -> Iterator[TrainBatch]:
        """The logged batches of steps step+1, step+2, … without a gap."""
        while (batch := self.read(run_id, step + 1)) is not None:
            yield batch
            step += 1

    def _path(self, run_id: str, step: int) -> Path:
        return self.root / batch_log_path(run_id, step)
