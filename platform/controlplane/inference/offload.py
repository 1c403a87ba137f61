"""Database work of async views on a few threads with lasting connections. Knows threads and connections, nothing of queries.

Django's own bridge gives every request a thread, and every thread a new connection; the gateway would open one per request. And
what was handed over here is carried out even when whoever waits for it is cancelled, up to the end of the process.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import ParamSpec, TypeVar

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

    handed_over = _executor.submit(copy_context().run, work)
    return await asyncio.shield(asyncio.wrap_future(handed_over))
