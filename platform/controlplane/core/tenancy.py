"""For whom the database is read and written: the scope that row-level security enforces.

Knows the scope of the running context and its two ways in. The database backend (`controlplane.core.database`) carries it to
PostgreSQL before each query. Nobody's scope, the default, sees no tenant's row. Refuses to know users and requests beyond
forgetting a request's scope when it ends.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction
from django.http import HttpRequest


@dataclass(frozen=True)
class Scope:
    """`team_id` sees and writes its own rows; `system` sees and writes every row (workers, authentication)."""

    team_id: str = ""
    system: bool = False


NOBODY = Scope()
_scope: ContextVar[Scope] = ContextVar("rootstock_scope", default=NOBODY)


def current_scope() -> Scope:
    return _scope.get()


def enter_team(team_id: str) -> None:
    """From here to the end of the request: authentication calls it once it knows the actor."""
    _scope.set(Scope(team_id=team_id))


@contextmanager
def acting_for(team_id: str) -> Iterator[None]:
    """Read and write as one team."""
    if not team_id:
        raise ValueError("acting_for needs a team id; an empty one would be nobody")
    with _within(Scope(team_id=team_id)):
        yield


@contextmanager
def acting_as_system() -> Iterator[None]:
    """Read and write across teams: workers, authentication, the internal API. Never around a tenant's own request."""
    with _within(Scope(system=True)):
        yield


@contextmanager
def _within(scope: Scope) -> Iterator[None]:
    # Set back by value, not by token: an async generator may be closed in another context than it was opened in.
    previous = _scope.get()
    _scope.set(scope)
    try:
        yield
    finally:
        _scope.set(previous)


class TenancyMiddleware:
    """Every request starts and ends as nobody, whatever the worker thread did before."""

    sync_capable = True
    async_capable = True

    def __init__(self, get_response: Any) -> None:
        self.get_response = get_response
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> Any:
        if iscoroutinefunction(self):
            return self._async_call(request)
        with _within(NOBODY):
            return self.get_response(request)

    async def _async_call(self, request: HttpRequest) -> Any:
        with _within(NOBODY):
            return await self.get_response(request)
