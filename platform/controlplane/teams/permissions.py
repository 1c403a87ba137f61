"""What a credential may do. A view names its `scope`; reading needs `<scope>:read`, everything else `<scope>:write`."""

from typing import Any, Final

from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from controlplane.core.errors import Forbidden, Unauthorized
from controlplane.teams.actors import Actor

SCOPES: Final = frozenset(
    f"{area}:{right}"
    for area in ("environments", "runs", "evals", "adapters", "inference", "billing", "teams", "keys")
    for right in ("read", "write")
)


class HasScope(BasePermission):
    """The default of every view: an actor, whose key carries the view's scope.

    A view without `scope` is closed to keys that are limited to scopes. `permission_classes = []` makes a view public.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        actor = request.user
        if not isinstance(actor, Actor):
            raise Unauthorized("Sign in or send an API key.", hint="`Authorization: Bearer rsk_…`")
        needed = f"{getattr(view, 'scope', '')}:{'read' if request.method in SAFE_METHODS else 'write'}"
        if not actor.may(needed):
            raise Forbidden(f"The API key lacks the scope {needed}.", code="scope_missing", hint="Use a key with that scope.")
        return True
