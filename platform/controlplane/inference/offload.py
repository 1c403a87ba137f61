"""Database work of async views on a few threads with lasting connections. Knows threads and connections, nothing of queries.

Django's own bridge gives every request a thread, and every thread a new connection; the gateway would open one per request.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from asgiref.sync import sync_to_async
from django.db import close_old_connections

DATABASE_THREADS = 8

P = ParamSpec("P")
R = TypeVar("R")
_executor = ThreadPoolExecutor(max_workers=DATABASE_THREADS, thread_name_prefix="gateway-database")


async def in_database(function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run `function` on a database thread, in the caller's context (the tenancy scope travels along)."""

    def work() -> R:
        close_old_connections()
        try:
            return function(*args, **kwargs)
        finally:
            close_old_connections()

    return await sync_to_async(work, thread_sensitive=False, executor=_executor)()
