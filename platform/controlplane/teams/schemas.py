"""Bodies of accounts, teams and keys. What the public client reads is spelled as it reads it."""

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, Field, StringConstraints, WithJsonSchema

from controlplane.core.pagination import OffsetQuery
from controlplane.core.schemas import Answer, Body, CamelAnswer, Query, example
from controlplane.teams.actors import Actor
from controlplane.teams.models import ApiKey, Membership, Team, User
from controlplane.teams.permissions import SCOPES

Email = Annotated[str, StringConstraints(pattern=r"^[^@\s]{1,64}@[^@\s]+\.[^@\s]+$", max_length=254)]
Password = Annotated[str, StringConstraints(max_length=256), Field(repr=False)]
Name = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=100)]
Slug = Annotated[str, StringConstraints(max_length=64)]
LimitName = Annotated[str, StringConstraints(max_length=64)]
# Checked by the service, whose refusal names the scope that is unknown.
Scope = Annotated[str, StringConstraints(max_length=64), WithJsonSchema({"type": "string", "enum": sorted(SCOPES)})]
Limits = Annotated[dict[LimitName, Annotated[int, Field(ge=0)]], Field(max_length=16)]


class SignUp(Body):
    """`key_name` asks for an API key at once, as a script wants it."""

    email: Email
    password: Password
    name: Annotated[str, StringConstraints(strip_whitespace=True, max_length=100)] = ""
    slug: Slug = ""
    key_name: Name | None = None


class SignIn(Body):
    model_config = example({"email": "ada@example.com", "password": "correct-horse-battery"})

    email: Email
    password: Password


class UserOut(Answer):
    id: str
    email: str
    name: str
    slug: str

    @classmethod
    def of(cls, user: User) -> "UserOut":
        return cls(id=user.id, email=user.email, name=user.name, slug=user.personal_team.slug)


class TeamOut(Answer):
    id: str
    slug: str
    name: str
    is_personal: bool
    role: str
    created_at: datetime

    @classmethod
    def of(cls, team: Team, role: str) -> "TeamOut":
        return cls(
            id=team.id,
            slug=team.slug,
            name=team.name,
            is_personal=team.personal_of_id is not None,
            role=role,
            created_at=team.created_at,
        )


class SessionOut(Answer):
    """`user` null: nobody is signed in. `csrf_token` goes into the header `X-CSRFToken` of every changing request."""

    user: UserOut | None
    teams: list[TeamOut]
    csrf_token: str
    api_key: str | None = None


class KeyIn(Body):
    """`scopes` null: everything the user may do. `expires_at` null: until it is revoked."""

    model_config = example({"name": "ci", "scopes": ["runs:read", "runs:write"], "expires_at": "2030-01-01T00:00:00Z"})

    name: Name
    scopes: Annotated[list[Scope], Field(min_length=1, max_length=64)] | None = None
    expires_at: AwareDatetime | None = None


class KeyOut(Answer):
    id: str
    name: str
    prefix: str
    scopes: list[Scope] | None
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None

    @classmethod
    def of(cls, key: ApiKey) -> "KeyOut":
        return cls(
            id=key.id,
            name=key.name,
            prefix=f"rsk_{key.prefix}",
            scopes=key.scopes,
            created_at=key.created_at,
            expires_at=key.expires_at,
            last_used_at=key.last_used_at,
        )


class KeyMade(KeyOut):
    """`key` is told this once; we keep its hash alone."""

    key: str


class KeyList(Answer):
    items: list[KeyOut]
    next_cursor: str | None


class ScopeRights(Answer):
    read: bool
    write: bool


class WhoAmI(Answer):
    id: str
    email: str
    name: str
    slug: str
    scope: dict[str, ScopeRights] | None
    key_limits: dict[str, int] | None

    @classmethod
    def of(cls, actor: Actor) -> "WhoAmI":
        user, key = UserOut.of(actor.user), actor.key
        return cls(
            **user.model_dump(),
            scope=None if key is None or key.scopes is None else _rights(key.scopes),
            key_limits=(key.limits or None) if key else None,
        )


class WhoAmIAnswer(Answer):
    data: WhoAmI


class SlugIn(Body):
    slug: Slug


class UserAnswer(Answer):
    data: UserOut


class TeamIn(Body):
    model_config = example({"name": "Lab", "slug": "lab"})

    name: Name
    slug: Slug = ""


class TeamAnswer(Answer):
    data: TeamOut


class TeamRow(CamelAnswer):
    team_id: str
    name: str
    slug: str
    role: str
    created_at: datetime

    @classmethod
    def of(cls, membership: Membership) -> "TeamRow":
        team = membership.team
        return cls(team_id=team.id, name=team.name, slug=team.slug, role=membership.role, created_at=team.created_at)


class TeamPage(Answer):
    data: list[TeamRow]
    total_count: int
    offset: int
    limit: int


class MemberIn(Body):
    email: Email
    role: Literal["ADMIN", "MEMBER"] = "MEMBER"


class MemberRow(CamelAnswer):
    user_id: str
    user_name: str
    user_email: str
    role: str
    joined_at: datetime

    @classmethod
    def of(cls, membership: Membership) -> "MemberRow":
        user = membership.user
        return cls(
            user_id=user.id, user_name=user.name, user_email=user.email, role=membership.role, joined_at=membership.created_at
        )


class MemberAnswer(Answer):
    data: MemberRow


class MemberPage(Answer):
    data: list[MemberRow]
    total_count: int
    offset: int
    limit: int


class ChallengeIn(Body):
    """As the public client spells it."""

    encryption_public_key: Annotated[str, Field(alias="encryptionPublicKey", max_length=4096)]
    limits: Limits | None = None


class ChallengeOut(Answer):
    challenge: str
    status_auth_token: str


class ChallengeQuery(Query):
    challenge: Annotated[str, Field(max_length=32)]


class ChallengeApproval(Body):
    challenge: Annotated[str, Field(max_length=32)]


class ChallengeResult(Answer):
    """`result` null: nobody has approved yet. Else base64 of the API key under RSA-OAEP."""

    result: str | None


class Page(OffsetQuery):
    limit: Annotated[int, Field(ge=1, le=500)] = 100


def page_of(rows: list[Any], query: OffsetQuery) -> dict[str, Any]:
    """A page of rows that are all in memory: nobody is in thousands of teams."""
    data = rows[query.offset : query.offset + query.limit]
    return {"data": data, "total_count": len(rows), "offset": query.offset, "limit": query.limit}


def _rights(scopes: list[str]) -> dict[str, ScopeRights]:
    areas = sorted({scope.partition(":")[0] for scope in scopes})
    return {area: ScopeRights(read=f"{area}:read" in scopes, write=f"{area}:write" in scopes) for area in areas}
