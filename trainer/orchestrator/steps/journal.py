"""The write-ahead journal of a run's steps: what a step will train on and report, on disk before the trainer is asked.

Knows files under the artifact root. Refuses to know HTTP. A record is named after step and attempt; the newest attempt's
record of a step is the one that counts, because the trainer refuses an older attempt by its fencing token. Records are kept
until the next step has been reported, so that the newest one always tells where the tasks went on.
"""

import re
from pathlib import Path

import zstandard

from trainer.contracts.base import PublicId, Wire
from trainer.contracts.internal import RolloutBatch, RunPosition, UsageIn
from trainer.contracts.samples import TrainBatch
from trainer.core.durable import sweep_temporaries, write_file
from trainer.orchestrator.environments.curriculum import CurriculumState

RECORD_BYTES_MAX = 1 << 30
_NAME = re.compile(r"^step-(\d+)\.attempt-(\d+)\.json\.zst$")


class StepRecord(Wire):
    """`cursors` counts the tasks taken from each environment up to this cut, `dataset_cursors` the rows that this step and those
    before it have trained on; `algorithm_state` is what each environment's algorithm remembered then, `curricula` what was
    known of its tasks. `segment` is the one that pays for `usage`."""

    run_id: PublicId
    step: int
    attempt: int
    segment: int
    batch: TrainBatch
    rollouts: RolloutBatch
    usage: list[UsageIn]
    metrics: dict[str, float]
    cursors: dict[str, int]
    dataset_cursors: dict[str, int] = {}
    algorithm_state: dict[str, dict[str, float]] = {}
    curricula: dict[str, CurriculumState] = {}
    wait_s: float = 0.0

    def position(self) -> RunPosition:
        """Where the run is in its data after this step."""
        return RunPosition.model_validate(self.model_dump(mode="json", include=set(RunPosition.model_fields)))


class StepJournal:
    def __init__(self, artifact_root: Path, run_id: str):
        self._folder = artifact_root / "runs" / run_id / "steps"

    def write(self, record: StepRecord) -> None:
        """Durable once this returns; before, it is not there."""
        data = zstandard.ZstdCompressor(level=3).compress(record.model_dump_json().encode())
        write_file(self._path(record.step, record.attempt), data)

    def read(self, step: int) -> StepRecord | None:
        """The record of a step by its newest attempt."""
        attempts = [attempt for found, attempt in self._entries() if found == step]
        return self._load(step, max(attempts)) if attempts else None

    def newest(self) -> StepRecord | None:
        steps = [step for step, _ in self._entries()]
        return self.read(max(steps)) if steps else None

    def sweep(self) -> None:
        """Remove what an attempt that was killed in `write` left."""
        sweep_temporaries(self._folder)

    def forget_before(self, step: int) -> None:
        """Remove the records of steps that have been reported."""
        for found, attempt in self._entries():
            if found < step:
                self._path(found, attempt).unlink(missing_ok=True)

    def _entries(self) -> list[tuple[int, int]]:
        if not self._folder.is_dir():
            return []
        matches = (_NAME.match(path.name) for path in self._folder.iterdir())
        return [(int(match[1]), int(match[2])) for match in matches if match]

    def _path(self, step: int, attempt: int) -> Path:
        return self._folder / f"step-{step}.attempt-{attempt}.json.zst"

    def _load(self, step: int, attempt: int) -> StepRecord:
        packed = self._path(step, attempt).read_bytes()
        return StepRecord.model_validate_json(zstandard.ZstdDecompressor().decompress(packed, max_output_size=RECORD_BYTES_MAX))
