"""Removes containers whose attempt has ended: an orchestrator that was killed could not, and an engine outlives it.

Boxes of bubblewrap die with their owner. Knows the labels that say whose a container is. Refuses to touch what this installation
did not start: an engine may serve several.
"""

import asyncio
import logging
from datetime import timedelta

from controlplane.core.clock import now
from controlplane.pools.queries import has_ended
from trainer.sandboxing.docker import DockerDriver
from workers.app import app

logger = logging.getLogger(__name__)
GRACE = timedelta(seconds=30)
"""From the end of a lease until its containers are removed: a holder that has finished does it by itself."""


@app.task(name="containers.sweep")
def sweep(driver: DockerDriver | None = None) -> int:
    """Returns how many containers were removed."""
    driver = driver or DockerDriver()
    left = [name for name, labels in asyncio.run(driver.boxes()).items() if _is_over(labels)]
    for name in left:
        asyncio.run(driver.remove(name))
        logger.warning("removed the container %s, whose attempt has ended", name)
    return len(left)


def _is_over(labels: dict[str, str]) -> bool:
    attempt, token = labels.get("attempt", ""), labels.get("fencing_token", "")
    if not (attempt.isdecimal() and token.isdecimal()):
        return False
    before = now() - GRACE
    return has_ended(subject_id=labels.get("subject", ""), attempt=int(attempt), fencing_token=int(token), before=before)
