"""The dashboard's session: whose it is, how it begins and ends. Knows the session's two entries; does no password check."""

import hmac

from django.http import HttpRequest
from django.middleware.csrf import rotate_token

from controlplane.teams import access
from controlplane.teams.models import User

USER_KEY = "user_id"
HASH_KEY = "user_hash"


def begin_session(request: HttpRequest, user: User) -> None:
    """A new session id and CSRF token at sign-in, so that one planted before is worth nothing."""
    request.session.flush()
    request.session[USER_KEY] = user.id
    request.session[HASH_KEY] = user.get_session_auth_hash()
    rotate_token(request)


def end_session(request: HttpRequest) -> None:
    request.session.flush()


def session_user(request: HttpRequest) -> User | None:
    """The user of the session. A changed password ends every session."""
    user_id = request.session.get(USER_KEY)
    user = access.user_by_id(user_id) if isinstance(user_id, str) else None
    if user is None or not hmac.compare_digest(str(request.session.get(HASH_KEY)), user.get_session_auth_hash()):
        return None
    return user
