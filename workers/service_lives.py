"""Starts and ends of the worker and of beat, and telling runs what was lost meanwhile.

Knows Celery's signals. A run goes on without any process of the control plane; its owner reads what happened in the run's log.
"""

import atexit
import logging
import time

from celery.signals import beat_init, worker_ready, worker_shutdown
from django.db import DatabaseError, connection, transaction

from controlplane.core import service_lives
from controlplane.core.models import ServiceLife
from controlplane.runs import lifecycle
from trainer.contracts.events import Component

logger = logging.getLogger(__name__)

DATABASE_DEADLINE_S = 45.0
PAUSE_S = 0.5


@worker_ready.connect
def worker_is_ready(**_: object) -> None:
    _begin(Component.WORKER)


@beat_init.connect
def beat_is_ready(**_: object) -> None:
    _begin(Component.BEAT)


def tell_losses() -> int:
    """Write what was lost into the history of every run that was at work; returns how many losses were told."""
    service_lives.notice_database_start()
    with transaction.atomic():
        losses = service_lives.untold_losses()
        for life in losses:
            lifecycle.tell_service_loss(Component(life.component), life.ended_at)
        service_lives.mark_told(losses)
    return len(losses)


def _begin(component: Component) -> None:
    """Open this process's life, and see to its end."""
    life = written_start(component)
    if life is None:
        return

    def end(**_: object) -> None:
        try:
            service_lives.end_life(life)
        except DatabaseError as error:
            logger.warning("the end of %s is not written down: %s", component, error)

    if component is Component.WORKER:
        worker_shutdown.connect(end, weak=False)
    else:
        atexit.register(end)


def written_start(component: Component) -> ServiceLife | None:
    """A database that is only starting again is waited for: a loss that nobody writes down is never told. The connection is
    closed, since the worker's children are forked from here."""
    give_up_at = time.monotonic() + DATABASE_DEADLINE_S
    while True:
        try:
            return service_lives.begin_life(component)
        except DatabaseError as error:
            if time.monotonic() > give_up_at:
                logger.warning("the start of %s is not written down: %s", component, error)
                return None
            time.sleep(PAUSE_S)
        finally:
            connection.close()
