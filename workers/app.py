"""The Celery application: which tasks there are, how often the clock rings, how a task runs.

The bridge between the control plane and the processes that do long work. PostgreSQL is the mailbox and Celery the doorbell: every
task looks at rows, does what is due and returns within seconds, so that a task that is lost, repeated or late changes nothing
but the time. Refuses to hold business rules: a task's body is a call of a service and of a launcher.
"""

import logging
import os
from typing import Any

import django
from celery import Celery, Task
from celery.signals import setup_logging

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "controlplane.settings")
django.setup()

# Django's settings and apps are usable only from here on.
from django.conf import settings  # noqa: E402

from controlplane.core.tenancy import acting_as_system  # noqa: E402

TASK_LIMIT_S = 55
MODULES = [
    "outbox",
    "runs",
    "evals",
    "releases",
    "exports",
    "artifacts",
    "reconcile",
    "deployments",
    "billing",
    "webhooks",
    "service_lives",
    "housekeeping",
    "containers",
]


class SystemTask(Task):  # type: ignore[type-arg]
    """Tasks work across teams. Each is told by row which team it works for."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with acting_as_system():
            return super().__call__(*args, **kwargs)


@setup_logging.connect
def keep_our_logging(**_: Any) -> None:
    """Django has configured logging; Celery would replace it. A ring of the clock is no news: two lines for each would bury the
    rest."""
    for name in ("celery.app.trace", "celery.worker.strategy", "celery.beat"):
        logging.getLogger(name).setLevel(logging.WARNING)


app = Celery("rootstock", broker=settings.BROKER_URL, task_cls=SystemTask, include=[f"workers.{name}" for name in MODULES])
app.conf.update(
    task_ignore_result=True,
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    task_time_limit=TASK_LIMIT_S + 5,
    task_soft_time_limit=TASK_LIMIT_S,
    worker_prefetch_multiplier=1,
    worker_max_tasks_per_child=20_000,
    broker_connection_retry_on_startup=True,
    broker_transport_options={"visibility_timeout": 4 * TASK_LIMIT_S},
    timezone="UTC",
)


def every(seconds: float, task: str) -> dict[str, Any]:
    """A ring that nobody has heard by the next one is worth nothing: it expires."""
    return {"task": task, "schedule": seconds, "options": {"expires": seconds}}


app.conf.beat_schedule = {
    "outbox": every(2.0, "outbox.drain"),
    "runs": every(2.0, "runs.schedule_runs"),
    "evaluations": every(2.0, "evals.schedule_evaluations"),
    "releases": every(5.0, "releases.schedule_checks"),
    "exports": every(5.0, "exports.schedule_exports"),
    "webhooks": every(5.0, "webhooks.deliver"),
    "leases": every(3.0, "leases.reconcile"),
    "deployments": every(10.0, "deployments.sweep"),
    "prices": every(300.0, "billing.publish_prices"),
    "checkpoints": every(30.0, "artifacts.sweep_checkpoints"),
    "versions": every(300.0, "artifacts.sweep_versions"),
    "expired exports": every(300.0, "exports.expire"),
    "expired": every(600.0, "housekeeping.sweep_expired"),
    "external runs": every(600.0, "housekeeping.end_silent_runs"),
    "containers": every(30.0, "containers.sweep"),
    "sessions": every(3600.0, "housekeeping.clear_sessions"),
}
