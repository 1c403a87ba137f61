"""Removes files that are out of reach: of checkpoints that runs' plans no longer keep, and of adapter versions that nobody can
serve, deploy or read from.

The rows come first. The manifest goes before the files, so that a process that is killed in between leaves a folder that counts
for nothing and that the next sweep removes. Refuses to know which ones: the apps of runs and adapters say so.
"""

import logging
from pathlib import Path

from controlplane.adapters import retention as versions
from controlplane.evals import access as evals
from controlplane.pools.models import Pool
from controlplane.runs import access as runs
from controlplane.runs import retention as checkpoints
from trainer.contracts.adapters import adapter_path, checkpoint_path
from trainer.core.durable import remove_folder
from workers.app import app

logger = logging.getLogger(__name__)


@app.task(name="artifacts.sweep_checkpoints")
def sweep_checkpoints() -> int:
    """Returns of how many checkpoints the files were removed."""
    checkpoints.retire_checkpoints()
    removed = 0
    for checkpoint in checkpoints.unremoved_checkpoints():
        if not _is_removed(checkpoint.run.pool, checkpoint_path(checkpoint.run_id, checkpoint.step)):
            break
        checkpoints.record_removed(checkpoint)
        removed += 1
    return removed


@app.task(name="artifacts.sweep_versions")
def sweep_versions() -> int:
    """Returns of how many adapter versions the files were removed."""
    removed = 0
    for adapter in versions.unreachable_versions(runs.weights_in_use() | evals.weights_in_use()):
        if not _is_removed(adapter.pool, adapter_path(adapter.run_id, adapter.version)):
            break
        versions.record_removed(adapter)
        removed += 1
    return removed


def _is_removed(pool: Pool, path: str) -> bool:
    root = Path(pool.artifact_root)
    if not (root / "runs").is_dir():
        logger.warning("this host has no artifacts at %s: files that nobody needs stay", root)
        return False
    remove_folder(root / path)
    return True
