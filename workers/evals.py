"""Starts waiting evaluations, as many as their pools have room for."""

from controlplane.evals import lifecycle
from controlplane.evals.services import SCHEDULE_TASK
from controlplane.pools import queries
from workers.app import app
from workers.launching import launch


@app.task(name=SCHEDULE_TASK)
def schedule_evaluations() -> int:
    """Lease and launch until nothing waits or no slot is free; returns how many were started."""
    started = 0
    for pool in queries.pools():
        while (granted := lifecycle.lease_next_evaluation(pool.id)) and launch(granted):
            started += 1
    return started
