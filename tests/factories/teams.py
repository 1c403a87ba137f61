"""Makes users and teams the way a sign-up does, and clients that act for them."""

from dataclasses import dataclass
from itertools import count
from typing import Any

from django.test import Client

from controlplane.teams import services
from controlplane.teams.access import actor_for
from controlplane.teams.actors import Actor

_numbers = count(1)
PASSWORD = "correct-horse-battery"


@dataclass(frozen=True)
class Member:
    """A user acting for a team, with a key."""

    actor: Actor
    key: str

    @property
    def team_id(self) -> str:
        return self.actor.team_id

    @property
    def slug(self) -> str:
        return self.actor.team.slug


def make_member(slug: str = "") -> Member:
    """A new user with a personal team, a wallet and a key."""
    slug = slug or f"team-{next(_numbers)}"
    user = services.sign_up(email=f"{slug}@example.com", password=PASSWORD, name=slug.title(), slug=slug)
    actor = actor_for(user)
    _, text = services.create_key(actor, name="test")
    return Member(actor, text)


def make_shared_team(*members: Member, slug: str = "") -> list[Member]:
    """A shared team; the first member is its admin. Answers the members acting for it."""
    first, *others = members
    team = services.create_team(first.actor, name="Shared", slug=slug or f"shared-{next(_numbers)}")
    for other in others:
        services.add_member(actor_for(first.actor.user, team_id=team.id), email=other.actor.user.email)
    return [Member(actor_for(member.actor.user, team_id=team.id), member.key) for member in members]


class ApiClient(Client):
    """Sends JSON and names its team in the header, as the SDKs do."""

    def __init__(self, member: Member | None = None) -> None:
        headers = {} if member is None else {"Authorization": f"Bearer {member.key}", "X-Prime-Team-ID": member.team_id}
        super().__init__(headers=headers, raise_request_exception=False)

    def post(self, path: str, data: Any = None, content_type: str = "application/json", **extra: Any) -> Any:
        return super().post(path, {} if data is None else data, content_type, **extra)

    def put(self, path: str, data: Any = "", content_type: str = "application/json", **extra: Any) -> Any:
        return super().put(path, data, content_type, **extra)

    def patch(self, path: str, data: Any = "", content_type: str = "application/json", **extra: Any) -> Any:
        return super().patch(path, data, content_type, **extra)

    def delete(self, path: str, data: Any = "", content_type: str = "application/json", **extra: Any) -> Any:
        return super().delete(path, data, content_type, **extra)


def client_for(member: Member | None = None) -> ApiClient:
    return ApiClient(member)


def without_names(answer: Any, *names: str) -> str:
    """A refusal's body without the request's id and what was asked for: the rest must not tell foreign from absent."""
    text = answer.content.decode()
    for name in (answer["X-Request-ID"], *names):
        text = text.replace(name, "*")
    return text
