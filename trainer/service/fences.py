"""Fencing tokens: at any time one holder may train a run, and whoever held it before is refused.

Knows the highest token per run, kept on disk so that a restarted trainer still refuses an old holder. Refuses to know what
the holder asks for.
"""

from pathlib import Path

from trainer.contracts.base import Wire
from trainer.core.durable import write_file
from trainer.core.errors import RunNotOpen, StaleLease

FENCE_NAME = "fence.json"


class Fence(Wire):
    fencing_token: int


class Fences:
    def __init__(self, root: Path) -> None:
        self.root = root

    def admit(self, run_id: str, token: int) -> None:
        """A holder opens the run. A token above the known one takes it over. Raises StaleLease for one below."""
        known = self._known(run_id)
        if token < known:
            raise StaleLease(f"token {token} is behind {known}: another holder has this run")
        if token > known:
            write_file(self._path(run_id), Fence(fencing_token=token).model_dump_json().encode())

    def check(self, run_id: str, token: int) -> None:
        """A holder goes on. Raises StaleLease for an old holder, RunNotOpen for one who has not opened the run."""
        known = self._known(run_id)
        if token < known:
            raise StaleLease(f"token {token} is behind {known}: another holder has this run")
        if token > known:
            raise RunNotOpen(f"run {run_id} was not opened with token {token}")

    def _known(self, run_id: str) -> int:
        path = self._path(run_id)
        return Fence.model_validate_json(path.read_bytes()).fencing_token if path.exists() else 0

    def _path(self, run_id: str) -> Path:
        return self.root / "runs" / run_id / FENCE_NAME
