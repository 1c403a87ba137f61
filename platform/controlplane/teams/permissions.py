"""What a credential may do. A view names its `scope`; reading needs `<scope>:read`, everything else `<scope>:write`."""

from typing import Any, Final

from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from controlplane.core.declarations import PUBLIC, Declarations
from controlplane.core.errors import Unauthorized
from controlplane.teams.actors import Actor

AREAS: Final = (
    "environments",
    "secrets",
    "datasets",
    "runs",
    "evals",
    "adapters",
    "inference",
    "billing",
    "teams",
    "keys",
    "webhooks",
)
SCOPES: Final = frozenset(f"{area}:{right}" for area in AREAS for right in ("read", "write"))


class HasScope(BasePermission):
    """The only permission of every view: an actor whose credential carries the scope that the view declares."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if not isinstance(view, Declarations) or not view.scope:
            raise TypeError(f"{type(view).__name__} declares no scope")
        method, actor = request.method or "", request.user
        needed = view.needed_scope(method)
        if needed == PUBLIC or (actor is None and view.admits_visitors(method)):
            return True
        if not isinstance(actor, Actor):
            raise Unauthorized("Sign in or send an API key.", hint="`Authorization: Bearer rsk_…`")
        actor.require_scope(needed)
        return True
