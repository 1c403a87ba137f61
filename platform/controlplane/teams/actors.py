"""Who acts, for which team. Every door takes one; views find it in `request.user`."""

from dataclasses import dataclass

from rest_framework.request import Request

from controlplane.core.errors import Forbidden
from controlplane.teams.models import ApiKey, Role, Team, User


@dataclass(frozen=True)
class Actor:
    """`key` is None for a signed-in browser session."""

    user: User
    team: Team
    role: Role
    key: ApiKey | None = None
    is_authenticated: bool = True

    @property
    def team_id(self) -> str:
        return self.team.id

    @property
    def credential_id(self) -> str:
        """What requests are counted by: the key, or the user whose session it is."""
        return self.key.id if self.key else self.user_id

    @property
    def user_id(self) -> str:
        return self.user.id

    def may(self, scope: str) -> bool:
        """Whether the credential carries `scope` (`runs:write`). Sessions and keys without scopes carry all."""
        return self.key is None or self.key.scopes is None or scope in self.key.scopes

    def require_scope(self, scope: str) -> None:
        if not self.may(scope):
            raise Forbidden(f"The API key lacks the scope {scope}.", code="scope_missing", hint="Use a key with that scope.")

    def require_admin(self) -> None:
        if self.role != Role.ADMIN:
            raise Forbidden("Only an admin of the team may do this.", code="admin_required", hint="Ask an admin of the team.")


def actor_in(request: Request) -> Actor:
    """The actor of a request that passed authentication and permission."""
    actor = request.user
    if not isinstance(actor, Actor):
        raise TypeError("the view has no authentication, or another one than ours")
    return actor
