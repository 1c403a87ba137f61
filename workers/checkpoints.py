"""Drops the checkpoints that runs' plans no longer keep: the rows first, then the files.

The manifest goes before the files, so that a process that is killed in between leaves a folder that counts for nothing and that
the next sweep removes. Refuses to know which ones: the app of runs retires them.
"""

import logging
from pathlib import Path

from controlplane.runs import retention
from trainer.contracts.adapters import checkpoint_path
from trainer.core.durable import remove_folder
from workers.app import app

logger = logging.getLogger(__name__)


@app.task(name="checkpoints.sweep")
def sweep() -> int:
    """Returns of how many checkpoints the files were removed."""
    retention.retire_checkpoints()
    removed = 0
    for checkpoint in retention.unremoved_checkpoints():
        root = Path(checkpoint.run.pool.artifact_root)
        if not (root / "runs").is_dir():
            logger.warning("this host has no artifacts at %s: the files of retired checkpoints stay", root)
            break
        remove_folder(root / checkpoint_path(checkpoint.run_id, checkpoint.step))
        retention.record_removed(checkpoint)
        removed += 1
    return removed
