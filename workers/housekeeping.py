"""Removes what has expired and would otherwise stay for ever."""

from importlib import import_module

from django.conf import settings

from controlplane.core import idempotency, throttling
from controlplane.ingest.services import end_silent_runs
from controlplane.webhooks.services import forget_old
from workers.app import app


@app.task(name="housekeeping.clear_sessions")
def clear_sessions() -> None:
    """Sign-ins that have run out."""
    import_module(settings.SESSION_ENGINE).SessionStore.clear_expired()


@app.task(name="housekeeping.sweep_expired")
def sweep_expired() -> int:
    """Answers kept for requests that are sent again, buckets of limits that are full by now, and old deliveries of webhooks."""
    return idempotency.sweep() + throttling.sweep() + forget_old()


@app.task(name="housekeeping.end_silent_runs")
def end_silent() -> int:
    """Runs that are trained elsewhere and of which nothing is heard any more."""
    return end_silent_runs()
