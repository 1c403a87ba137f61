"""From a request to an Actor: a bearer key, or the dashboard's session. Knows headers; the doors know keys and teams.

The team is named by `team_id`/`teamId` in the query or the JSON body, or by the header `X-Prime-Team-ID`; else it is the user's
personal one. From here on the request reads and writes as that team.
"""

from typing import Any

from asgiref.sync import sync_to_async
from django.http import HttpRequest
from django.middleware.csrf import CsrfViewMiddleware
from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from controlplane.core.errors import Forbidden, Unauthorized
from controlplane.core.tenancy import enter_team
from controlplane.teams import access
from controlplane.teams.actors import Actor
from controlplane.teams.sessions import session_user

TEAM_HEADER = "X-Prime-Team-ID"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
TEAM_ID_LENGTH_MAX = 64


class KeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer rsk_…`, or `x-api-key: rsk_…`, as some trainers send it."""

    def authenticate(self, request: Request) -> tuple[Actor, None] | None:
        text = bearer_text(request._request)
        if text is None:
            return None
        key = access.key_by_text(text)
        actor = access.actor_for(key.user, team_id=_named_team(request), key=key)
        enter_team(actor.team_id)
        return actor, None

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class SessionAuthentication(BaseAuthentication):
    """The dashboard's cookie. What changes something also needs the CSRF token."""

    def authenticate(self, request: Request) -> tuple[Actor, None] | None:
        user = session_user(request._request)
        if user is None:
            return None
        check_csrf(request._request)
        actor = access.actor_for(user, team_id=_named_team(request))
        enter_team(actor.team_id)
        return actor, None

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


def actor_of(request: HttpRequest) -> Actor:
    """For plain Django views. Raises Unauthorized where neither key nor session is there."""
    text = bearer_text(request)
    team_id = _team_in_query(request) or _team_in_header(request)
    if text is not None:
        key = access.key_by_text(text)
        return access.actor_for(key.user, team_id=team_id, key=key)
    user = session_user(request)
    if user is None:
        raise Unauthorized("Sign in or send an API key.", hint="`Authorization: Bearer rsk_…`")
    check_csrf(request)
    return access.actor_for(user, team_id=team_id)


def actor_now(request: HttpRequest) -> Actor:
    """`actor_of` for a request that stays open: read anew, so that a session or key that ended meanwhile is Unauthorized."""
    request.session = type(request.session)(request.session.session_key)
    return actor_of(request)


async def async_actor_of(request: HttpRequest) -> Actor:
    """`actor_of` for async views. It leaves the scope alone: wrap each database access in `acting_for(actor.team_id)`."""
    return await sync_to_async(actor_of)(request)


def bearer_text(request: HttpRequest) -> str | None:
    scheme, _, text = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() == "bearer" and text.strip():
        return text.strip()
    return request.headers.get("x-api-key", "").strip() or None


def check_csrf(request: HttpRequest) -> None:
    """Raises Forbidden unless the request is safe or carries its session's CSRF token."""
    if request.method in SAFE_METHODS:
        return
    check = _CsrfCheck(lambda _: None)  # type: ignore[arg-type,return-value]
    check.process_request(request)
    if reason := check.process_view(request, lambda: None, (), {}):  # type: ignore[arg-type]
        raise Forbidden(f"CSRF check failed: {reason}", code="csrf_failed", hint="Send the cookie's value as `X-CSRFToken`.")


class _CsrfCheck(CsrfViewMiddleware):
    """Django's own check, answering with the reason instead of a page."""

    def _reject(self, request: HttpRequest, reason: str) -> Any:
        return reason


def _named_team(request: Request) -> str | None:
    # The header last: SDKs set it once for every call.
    return _team_in_query(request._request) or _team_in_body(request) or _team_in_header(request._request)


def _team_in_query(request: HttpRequest) -> str | None:
    return (request.GET.get("team_id") or request.GET.get("teamId") or "")[:TEAM_ID_LENGTH_MAX] or None


def _team_in_header(request: HttpRequest) -> str | None:
    return request.headers.get(TEAM_HEADER, "")[:TEAM_ID_LENGTH_MAX] or None


def _team_in_body(request: Request) -> str | None:
    """Only JSON objects name a team. A malformed body is the view's to refuse, after the permissions."""
    if request.method in SAFE_METHODS or not (request.content_type or "").startswith("application/json"):
        return None
    data = request.data
    named = (data.get("team_id") or data.get("teamId")) if isinstance(data, dict) else None
    return named[:TEAM_ID_LENGTH_MAX] if isinstance(named, str) else None
