"""Which processes of the control plane live, and which have ended without being asked to.

A process writes its start down, and its end when it is asked to end. Whoever starts and finds a life of the same component on
this host whose process is gone knows that it was lost: `kill -9`, a crash, a power cut. So a loss is known as soon as its
successor works, without heartbeats. The database's own start is compared with the last one that was seen. Refuses to know whom a
loss concerns: `untold_losses` is for whoever tells them.
"""

import os
import socket

from django.db import connection, transaction

from controlplane.core.clock import now
from controlplane.core.models import ServiceLife
from controlplane.core.processes import started_at
from trainer.contracts.events import Component


@transaction.atomic
def begin_life(component: Component) -> ServiceLife:
    """This process has started. Lives of its component on this host whose process is gone count as lost."""
    host = socket.gethostname()
    for life in ServiceLife.objects.select_for_update().filter(component=component, host=host, ended_at__isnull=True):
        if started_at(life.pid) != life.mark:
            _close(life, is_lost=True)
    return ServiceLife.objects.create(component=component, host=host, pid=os.getpid(), mark=started_at(os.getpid()) or 0)


def end_life(life: ServiceLife) -> None:
    """This process was asked to end."""
    _close(life, is_lost=False)


@transaction.atomic
def notice_database_start() -> None:
    """A database that has started since it was last looked at had ended, in whatever way: what was open then is gone."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint")
        (mark,) = cursor.fetchone()
    known = ServiceLife.objects.select_for_update().filter(component=Component.DATABASE, ended_at__isnull=True).first()
    if known is not None and known.mark == mark:
        return
    if known is not None:
        _close(known, is_lost=True)
    ServiceLife.objects.create(component=Component.DATABASE, host="", pid=0, mark=mark)


def untold_losses() -> list[ServiceLife]:
    """Locked; the caller's transaction tells of them and marks them."""
    lost = ServiceLife.objects.select_for_update(skip_locked=True).filter(is_lost=True, told_at__isnull=True)
    return list(lost.order_by("id")[:100])


def mark_told(losses: list[ServiceLife]) -> None:
    ServiceLife.objects.filter(pk__in=[life.pk for life in losses]).update(told_at=now())


def _close(life: ServiceLife, *, is_lost: bool) -> None:
    life.ended_at, life.is_lost = now(), is_lost
    life.save(update_fields=["ended_at", "is_lost"])
