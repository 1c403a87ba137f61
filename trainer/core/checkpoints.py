"""Checkpoints: everything that a run needs to go on, bit for bit.

Knows the adapter, its moments, the random state and the counters, as safetensors and JSON. Refuses to know batches: what
came after a checkpoint is in the batch log. Nothing is unpickled.
"""

import hashlib
import logging
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from safetensors.torch import load, save
from torch import Tensor

from trainer.contracts.adapters import MANIFEST_NAME, CheckpointManifest, LoraSpec, checkpoint_path
from trainer.contracts.manifests import UnknownFormat, read_checkpoint_manifest
from trainer.contracts.training import CheckpointWritten
from trainer.core.durable import entry_of, read_verified, write_folder
from trainer.core.errors import UnknownState

log = logging.getLogger(__name__)

STATE_NAME = "state.safetensors"
TENSORS = frozenset({"params", "first_moments", "second_moments", "random_state"})
_FOLDER = re.compile(r"^step-(\d+)$")


@dataclass(frozen=True)
class Checkpoint:
    """`tensors` holds TENSORS: three flat vectors of the adapter's size, and the generator's state."""

    manifest: CheckpointManifest
    tensors: dict[str, Tensor]

    @property
    def step(self) -> int:
        return self.manifest.step


class CheckpointStore:
    def __init__(self, root: Path, base_digest: str) -> None:
        self.root = root
        self.base_digest = base_digest

    def write(self, run_id: str, team_id: str, step: int, lora: LoraSpec, tensors: dict[str, Tensor]) -> CheckpointWritten:
        """Commit the state after `step`, or return the checkpoint that is there."""
        if tensors.keys() != TENSORS:
            raise ValueError(f"a checkpoint holds {sorted(TENSORS)}, not {sorted(tensors)}")
        folder = self.root / checkpoint_path(run_id, step)
        if not (folder / MANIFEST_NAME).exists():
            state = save(tensors)
            manifest = CheckpointManifest(
                run_id=run_id,
                team_id=team_id,
                step=step,
                base_digest=self.base_digest,
                lora=lora,
                files={STATE_NAME: entry_of(state)},
                created_at=datetime.now(UTC),
            )
            write_folder(folder, {STATE_NAME: state}, manifest.model_dump_json(indent=2).encode())
        return self._written(run_id, step)

    def newest(self, run_id: str) -> Checkpoint | None:
        """The committed checkpoint of the highest step, by number; one whose files do not match its manifest is passed over.

        Raises UnknownState for one that another release wrote: what it holds must not be trained over."""
        folder = self.root / checkpoint_path(run_id, 0)
        steps = sorted((int(m[1]) for p in folder.parent.glob("step-*") if (m := _FOLDER.match(p.name))), reverse=True)
        for step in steps:
            path = self.root / checkpoint_path(run_id, step)
            if not (path / MANIFEST_NAME).exists():
                continue
            try:
                return self.read(path)
            except UnknownFormat as problem:
                raise UnknownState(f"checkpoint step-{step} of run {run_id}: {problem}") from problem
            except (OSError, ValueError) as problem:
                log.error("checkpoint step-%d of run %s is unreadable, going on with an older one: %s", step, run_id, problem)
        return None

    def read(self, folder: Path) -> Checkpoint:
        """Raises ValueError for files or a manifest that do not fit."""
        manifest = read_checkpoint_manifest((folder / MANIFEST_NAME).read_bytes())
        if manifest.base_digest != self.base_digest:
            raise ValueError(f"written on base weights {manifest.base_digest[:12]}, these are {self.base_digest[:12]}")
        tensors = load(read_verified(folder, STATE_NAME, manifest.files[STATE_NAME]))
        if tensors.keys() != TENSORS:
            raise ValueError(f"{STATE_NAME} holds {sorted(tensors)}")
        return Checkpoint(manifest, tensors)

    def _written(self, run_id: str, step: int) -> CheckpointWritten:
        path = checkpoint_path(run_id, step)
        manifest = (self.root / path / MANIFEST_NAME).read_bytes()
        files = read_checkpoint_manifest(manifest).files
        return CheckpointWritten(
            run_id=run_id,
            step=step,
            path=path,
            digest=hashlib.sha256(manifest).hexdigest(),
            size_bytes=len(manifest) + sum(entry.size_bytes for entry in files.values()),
        )
