"""Makes the world match the rows: leases whose holder is gone, processes that nobody leases, stops that nobody obeyed.

Derives everything from rows and from /proc, so that it does not matter what it missed while it was not running.
"""

import logging
from datetime import timedelta

from controlplane.core.clock import now
from controlplane.evals import lifecycle as eval_lifecycle
from controlplane.evals import queries as eval_queries
from controlplane.pools import queries
from controlplane.pools.models import Lease
from controlplane.pools.services import take_back
from controlplane.runs import lifecycle as run_lifecycle
from controlplane.runs import queries as run_queries
from workers.app import app
from workers.launching import holder_of, launcher
from workers.service_lives import tell_losses

logger = logging.getLogger(__name__)
STOP_GRACE = timedelta(seconds=20)
"""From the wish to stop until the process is taken down: time for a last report."""
EXIT_GRACE = timedelta(seconds=10)
"""From the end of a lease until a process that still lives is killed: a holder that has finished cleans up meanwhile."""
START_GRACE = timedelta(seconds=20)
"""From the grant until a lease that names no process is given up: whoever should have started one has died."""
LEFTOVERS_SINCE_S = 600


@app.task(name="leases.reconcile")
def reconcile() -> None:
    take_back_lost_leases()
    end_overdue_stops()
    repair_unleased_runs()
    kill_leftovers()
    tell_losses()


def take_back_lost_leases() -> int:
    """Leases that expired, and those whose process on this host has died: at once, without waiting for the expiry."""
    moment, taken = now(), 0
    for lease in queries.live_leases():
        if lease.expires_at <= moment:
            taken += take_back(lease.id, reason="the process fell silent", only_expired=True) is not None
        elif lease.holder_pid is None and lease.created_at + START_GRACE <= moment:
            taken += take_back(lease.id, reason="no process was started", only_expired=False) is not None
        elif _has_died(lease):
            taken += take_back(lease.id, reason="the process died", only_expired=False) is not None
    return taken


def _has_died(lease: Lease) -> bool:
    holder = holder_of(lease)
    return holder is not None and launcher().is_lost(holder)


def end_overdue_stops() -> None:
    moment = now()
    for run_id in run_queries.stop_overdue_since(moment - STOP_GRACE):
        run_lifecycle.force_stop(run_id)
    for evaluation_id in eval_queries.overdue(moment, grace=STOP_GRACE):
        eval_lifecycle.end_overdue(evaluation_id)


def repair_unleased_runs() -> None:
    """A run whose state says that somebody works on it has a lease. Should that ever not hold, it would wait for ever."""
    leased = {lease.subject_id for lease in queries.live_leases()}
    for run_id in run_queries.leased_without_lease(leased):
        run_lifecycle.repair_unleased(run_id)


def kill_leftovers() -> int:
    """Processes of this host whose lease has ended: their token opens nothing, yet they would go on using the machine."""
    killed = 0
    for lease in queries.ended_leases_since(LEFTOVERS_SINCE_S):
        holder = holder_of(lease)
        is_due = lease.released_at is not None and lease.released_at + EXIT_GRACE <= now()
        if holder is not None and is_due and launcher().kill(holder):
            logger.warning("killed what was left of attempt %s of %s %s", lease.attempt, lease.subject_kind, lease.subject_id)
            killed += 1
    return killed
