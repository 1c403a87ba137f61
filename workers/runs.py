"""Starts queued runs, as many as their pools have room for."""

from controlplane.pools import queries
from controlplane.runs import lifecycle
from controlplane.runs.services import SCHEDULE_TASK
from workers.app import app
from workers.launching import launch


@app.task(name=SCHEDULE_TASK)
def schedule_runs() -> int:
    """Lease and launch until nothing waits or no slot is free; returns how many were started."""
    started = 0
    for pool in queries.pools():
        while (granted := lifecycle.lease_next_run(pool.id)) and launch(granted):
            started += 1
        lifecycle.explain_waiting(pool)
    return started
