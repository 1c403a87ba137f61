"""The doors of users, teams and keys: the only place that finds one by id or by what it proves itself with.

Foreign and absent look the same. Lookups that come before the actor is known, or that span teams, run as the system, each with
its own condition on the user.
"""

from datetime import timedelta

from django.db.models import Q, QuerySet

from controlplane.core import clock
from controlplane.core.clock import DatabaseNow
from controlplane.core.errors import NotFound, Unauthorized
from controlplane.core.models import TenantModel
from controlplane.core.tenancy import acting_as_system, acting_for, enter_team
from controlplane.teams.actors import Actor
from controlplane.teams.keys import parse_key
from controlplane.teams.models import ApiKey, LoginChallenge, Membership, Role, Team, User

# A key's last use is a hint for its owner; writing it at every request would serialise the key's requests on its row.
LAST_USED_EVERY_S = 60
KEY_HINT = "Make one on the keys page or with `prime login`."


def user_by_email(email: str) -> User | None:
    return User.objects.filter(email=email.strip().lower()).first()


def user_by_id(user_id: str) -> User | None:
    return User.objects.filter(id=user_id).first()


def key_by_text(text: str) -> ApiKey:
    """The live key that `text` spells. Raises Unauthorized: a typo is told without a look into the database, and only the holder
    of the whole key is told that it has ended."""
    spelled = parse_key(text)
    if spelled is None:
        raise Unauthorized("This is no API key: a character is wrong or missing.", code="malformed_key", hint=KEY_HINT)
    with acting_as_system():
        found = ApiKey.objects.annotate(moment=DatabaseNow()).filter(prefix=spelled.prefix).select_related("user").first()
        if found is None or not spelled.matches(found.secret_sha256):
            raise Unauthorized("The API key is not valid.", code="invalid_key", hint=KEY_HINT)
        if found.revoked_at is not None:
            raise Unauthorized("The API key was revoked.", code="revoked_key", hint=KEY_HINT)
        if found.expires_at is not None and found.expires_at <= found.moment:
            raise Unauthorized("The API key has expired.", code="expired_key", hint=KEY_HINT)
        _touch(found)
    return found


def _touch(key: ApiKey) -> None:
    stale = Q(last_used_at__isnull=True) | Q(last_used_at__lt=DatabaseNow() - timedelta(seconds=LAST_USED_EVERY_S))
    ApiKey.objects.filter(stale, id=key.id).update(last_used_at=DatabaseNow())


def actor_for(user: User, *, team_id: str | None = None, key: ApiKey | None = None) -> Actor:
    """The user acting for a team of theirs: the named one, else the personal one. Raises NotFound for any other."""
    with acting_as_system():
        mine = Membership.objects.filter(user=user).select_related("team")
        chosen = mine.filter(team_id=team_id) if team_id else mine.filter(team__personal_of=user)
        membership = chosen.first()
    if membership is None:
        raise NotFound("There is no such team.", hint="`prime teams list` shows yours.")
    return Actor(user=user, team=membership.team, role=Role(membership.role), key=key)


def enter_team_of(actor: Actor, rows: QuerySet[TenantModel]) -> str | None:
    """The public client names no team when it asks for one object by id. Where the only row of `rows` belongs to another team of
    the actor's user, the request goes on as that team, whose id is answered: the door looks again there."""
    with acting_as_system():
        mine = Membership.objects.filter(user=actor.user).values("team_id")
        team_id = rows.filter(team_id__in=mine).values_list("team_id", flat=True).first()
    if team_id is not None:
        enter_team(team_id)
    return team_id


def memberships_of(user: User) -> list[Membership]:
    """Every team of the user, the personal one first."""
    with acting_as_system():
        rows = Membership.objects.filter(user=user).select_related("team").order_by("-team__personal_of", "created_at", "id")
        return list(rows)


def team_of_member(actor: Actor, team_id: str) -> Team:
    """A team that the actor's user belongs to."""
    return actor_for(actor.user, team_id=team_id).team


def members_of(team: Team) -> QuerySet[Membership]:
    return Membership.objects.filter(team=team).select_related("user").order_by("created_at", "id")


def membership_of(team: Team, user_id: str) -> Membership:
    """A user's place in the team."""
    membership = members_of(team).filter(user_id=user_id).first()
    if membership is None:
        raise NotFound(f"The team has no member '{user_id}'.", hint="`prime teams members` lists them.")
    return membership


def is_last_admin(membership: Membership) -> bool:
    """Locks the team's admins until the transaction ends, so that two of them cannot leave at once."""
    admins = Membership.objects.select_for_update().filter(team_id=membership.team_id, role=Role.ADMIN).order_by("id")
    return list(admins.values_list("id", flat=True)) == [membership.id]


def keys_of(actor: Actor) -> QuerySet[ApiKey]:
    """Live keys of the actor's user. They are rows of the personal team: read them acting for it."""
    return ApiKey.objects.filter(user=actor.user, revoked_at__isnull=True)


def key_of(actor: Actor, key_id: str) -> ApiKey:
    with acting_for(actor.user.personal_team.id):
        key = ApiKey.objects.filter(id=key_id, user=actor.user, revoked_at__isnull=True).first()
    if key is None:
        raise NotFound(f"There is no key '{key_id}'.", hint="`prime keys list` shows yours.")
    return key


def open_challenge(code: str, *, lock: bool = False) -> LoginChallenge:
    """A login challenge that has not expired."""
    challenges = LoginChallenge.objects.select_for_update() if lock else LoginChallenge.objects.all()
    challenge = challenges.filter(code=code).first()
    if challenge is None or challenge.expires_at <= clock.now():
        raise NotFound("This login request does not exist or has expired.", hint="Run `prime login` again.")
    return challenge
