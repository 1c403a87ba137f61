"""Starts the checks of pushed releases, a few at a time. A check builds and runs a stranger's package in a sandbox."""

from controlplane.hub.attempts import begin_check
from controlplane.hub.queries import unsettled_releases
from controlplane.hub.services import CHECK_TASK
from controlplane.pools.queries import live_count
from workers.app import app
from workers.launching import launch

CHECKS_MAX = 2
"""At once on this installation: a build takes a core and must not take the runs' share."""


@app.task(name=CHECK_TASK)
def start_check(release_id: str) -> bool:
    """Check a release now. With every place taken it waits for the sweep; asking twice starts one check."""
    if live_count("release") >= CHECKS_MAX:
        return False
    granted = begin_check(release_id)
    return granted is not None and launch(granted)


@app.task(name="releases.schedule_checks")
def schedule_checks() -> int:
    """The releases that still have no verdict, oldest first; returns how many checks were started."""
    return sum(start_check(release_id) for release_id in unsettled_releases(limit=CHECKS_MAX))
