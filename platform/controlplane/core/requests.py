"""What is known of every request before any view: its id. Callers may choose it, within a safe alphabet."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest, HttpResponseBase

from trainer.contracts.base import new_id

HEADER = "X-Request-ID"
_ACCEPTABLE = re.compile(r"[A-Za-z0-9._-]{8,64}")
_request_id: ContextVar[str] = ContextVar("rootstock_request_id", default="")


def current_request_id() -> str:
    """The id of the request being served, or "" outside one."""
    return _request_id.get()


@contextmanager
def request_id() -> Iterator[str]:
    """An id for a request that is answered before any middleware saw it."""
    token = _request_id.set(new_id())
    try:
        yield _request_id.get()
    finally:
        _request_id.reset(token)


class RequestIdMiddleware:
    """Gives the request its id and repeats it in the answer, so that a user's report finds the log line."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        if iscoroutinefunction(self):
            return self._async_call(request)
        _request_id.set(_choose_id(request))
        return _stamp(self.get_response(request))

    async def _async_call(self, request: HttpRequest) -> HttpResponseBase:
        _request_id.set(_choose_id(request))
        return _stamp(await self.get_response(request))


def _choose_id(request: HttpRequest) -> str:
    offered = request.headers.get(HEADER, "")
    return offered if _ACCEPTABLE.fullmatch(offered) else new_id()


def _stamp(response: HttpResponseBase) -> HttpResponseBase:
    response[HEADER] = current_request_id()
    return response
