"""A bare Celery producer: sends a task by its name. Knows the broker's URL; refuses to know any task.

Every message is a doorbell: the work itself is in PostgreSQL. So a broker that is away is logged and not an error of the caller,
whose change is committed already.
"""

import logging
from functools import cache

from celery import Celery
from django.conf import settings
from kombu.exceptions import OperationalError

logger = logging.getLogger(__name__)
CONNECT_TIMEOUT_S = 2.0


@cache
def producer() -> Celery:
    app = Celery("rootstock-producer", broker=settings.BROKER_URL, set_as_current=False)
    app.conf.update(
        task_ignore_result=True,
        broker_connection_timeout=CONNECT_TIMEOUT_S,
        broker_transport_options={"socket_connect_timeout": CONNECT_TIMEOUT_S, "socket_timeout": CONNECT_TIMEOUT_S},
    )
    return app


def send(task: str, **payload: object) -> None:
    """Ring for `task`. A broker that cannot be reached is logged: the sweepers find the work."""
    try:
        producer().send_task(task, kwargs=payload, retry=False, ignore_result=True)
    except OperationalError as error:
        logger.warning("the broker did not take %s: %s", task, error)


def is_reachable() -> bool:
    try:
        with producer().connection_for_write() as connection:
            connection.ensure_connection(max_retries=1, timeout=CONNECT_TIMEOUT_S)
    except OperationalError:
        return False
    return True
