"""Writes to users, teams and keys. One transaction each, no network; each leaves an audit event."""

from datetime import datetime, timedelta
from functools import cache

from django.contrib.auth.hashers import check_password, make_password
from django.db import IntegrityError, transaction

from controlplane.audit.services import record
from controlplane.billing.services import open_wallet
from controlplane.core import clock
from controlplane.core.clock import DatabaseNow
from controlplane.core.errors import Conflict, Forbidden, Invalid, NotFound, Unauthorized
from controlplane.core.tenancy import acting_as_system, acting_for
from controlplane.teams import access
from controlplane.teams.actors import Actor
from controlplane.teams.keys import generate_key
from controlplane.teams.models import ApiKey, Membership, Role, Team, User
from controlplane.teams.permissions import SCOPES
from controlplane.teams.slugs import check_slug, suggest_slug

PASSWORD_LENGTH_MIN = 10
KEYS_PER_USER_MAX = 100
KEY_LIFE_MAX = timedelta(days=3650)


def sign_up(*, email: str, password: str, name: str = "", slug: str = "") -> User:
    """A user with a personal team and its wallet. Raises Conflict when the e-mail or the slug is taken."""
    if len(password) < PASSWORD_LENGTH_MIN:
        raise Invalid(("body", "password"), f"at least {PASSWORD_LENGTH_MIN} characters", code="weak_password")
    slug = check_slug(slug) if slug else suggest_slug(email.partition("@")[0])
    user = User(email=email.strip().lower(), name=name or slug, password=make_password(password))
    with acting_as_system(), transaction.atomic():
        if User.objects.filter(email=user.email).exists():
            raise Conflict("This e-mail address is already taken.", code="email_taken", hint="Sign in instead.")
        user.save(force_insert=True)
        actor = _found_team(user, slug=slug, name=user.name, personal=True)
        record(actor, "user.signed_up", kind="user", object_id=user.id)
    return user


def verify_password(*, email: str, password: str) -> User:
    """Raises Unauthorized, with one text whether the user or the password is wrong."""
    user = access.user_by_email(email)
    if not check_password(password, user.password if user else _nobodys_password()) or user is None:
        raise Unauthorized("E-mail address or password is wrong.", code="wrong_credentials")
    return user


@cache
def _nobodys_password() -> str:
    """Compared with where no user is found, so that the answer takes as long as with one."""
    return make_password("nobody has this password")


def create_team(actor: Actor, *, name: str, slug: str = "") -> Team:
    """A shared team with a wallet; the actor is its admin. Raises Conflict when the slug is taken."""
    slug = check_slug(slug) if slug else suggest_slug(name)
    with acting_as_system(), transaction.atomic():
        founder = _found_team(actor.user, slug=slug, name=name, personal=False)
        record(founder, "team.created", kind="team", object_id=founder.team_id)
    return founder.team


def _found_team(user: User, *, slug: str, name: str, personal: bool) -> Actor:
    team = Team(slug=slug, name=name, personal_of=user if personal else None)
    _save_slug(team)
    Membership.objects.create(team=team, user=user, role=Role.ADMIN)
    open_wallet(team)
    return Actor(user=user, team=team, role=Role.ADMIN)


def _save_slug(team: Team) -> None:
    """The database decides who was first; a look before would race."""
    try:
        with transaction.atomic():
            team.save()
    except IntegrityError:
        raise Conflict(f"The name {team.slug!r} is already taken.", code="slug_taken", hint="Choose another.") from None


def change_slug(actor: Actor, slug: str) -> User:
    """The user's public name, which is that of the personal team."""
    personal = access.actor_for(actor.user)
    with acting_for(personal.team_id), transaction.atomic():
        before, personal.team.slug = personal.team.slug, check_slug(slug)
        _save_slug(personal.team)
        record(personal, "user.slug_changed", kind="user", object_id=actor.user_id, detail={"from": before, "to": slug})
    return personal.user


def add_member(actor: Actor, *, email: str, role: Role = Role.MEMBER) -> Membership:
    """Make a user a member of the actor's team, or change the role. Admins of shared teams only."""
    actor.require_admin()
    if actor.team.personal_of_id is not None:
        raise Conflict("A personal team has no other members.", code="personal_team", hint="Make a shared team.")
    user = access.user_by_email(email)
    if user is None:
        raise NotFound("No user has this e-mail address.", hint="They sign up first.")
    with acting_for(actor.team_id), transaction.atomic():
        known = Membership.objects.filter(team=actor.team, user=user).first()
        if known is not None and role != Role.ADMIN and access.is_last_admin(known):
            raise Conflict("The team would have no admin.", code="last_admin", hint="Make another member an admin first.")
        membership, _ = Membership.objects.update_or_create(team=actor.team, user=user, defaults={"role": role})
        record(actor, "member.added", kind="user", object_id=user.id, detail={"role": role})
    return membership


def remove_member(actor: Actor, user_id: str) -> None:
    """End a membership of the actor's team: an admin ends anybody's, everybody their own. A team keeps at least one admin."""
    if user_id != actor.user_id:
        actor.require_admin()
    if actor.team.personal_of_id is not None:
        raise Conflict("A personal team keeps its only member.", code="personal_team", hint="Leave a shared team.")
    with acting_for(actor.team_id), transaction.atomic():
        membership = access.membership_of(actor.team, user_id)
        if access.is_last_admin(membership):
            raise Conflict("The team would have no admin.", code="last_admin", hint="Make another member an admin first.")
        membership.delete()
        record(actor, "member.removed", kind="user", object_id=user_id)


def create_key(
    actor: Actor,
    *,
    name: str,
    scopes: list[str] | None = None,
    expires_at: datetime | None = None,
    limits: dict[str, int] | None = None,
) -> tuple[ApiKey, str]:
    """A key of the actor's user, and its text, which is told this once. A limited key makes no wider one."""
    _check_scopes(actor, scopes)
    _check_expiry(actor, expires_at)
    spelled = generate_key()
    personal = access.actor_for(actor.user, key=actor.key)
    with acting_for(personal.team_id), transaction.atomic():
        if ApiKey.objects.filter(user=actor.user, revoked_at__isnull=True).count() >= KEYS_PER_USER_MAX:
            raise Conflict(f"A user has at most {KEYS_PER_USER_MAX} keys.", code="too_many_keys", hint="Revoke one.")
        key = ApiKey.objects.create(
            team=personal.team,
            user=actor.user,
            name=name,
            prefix=spelled.prefix,
            secret_sha256=spelled.sha256,
            scopes=scopes,
            limits=limits or {},
            expires_at=expires_at,
        )
        record(personal, "key.created", kind="key", object_id=key.id, detail={"name": name, "scopes": scopes})
    return key, spelled.text


def _check_scopes(actor: Actor, scopes: list[str] | None) -> None:
    unknown = sorted(set(scopes or ()) - SCOPES)
    if unknown:
        raise Invalid(("body", "scopes"), f"unknown: {', '.join(unknown)}; there are {', '.join(sorted(SCOPES))}")
    held = actor.key.scopes if actor.key else None
    if held is not None and (scopes is None or not set(scopes) <= set(held)):
        raise Forbidden("A limited key cannot make a key with more scopes than its own.", code="scope_missing")


def _check_expiry(actor: Actor, expires_at: datetime | None) -> None:
    loc, moment = ("body", "expires_at"), clock.now()
    if expires_at is not None and not moment < expires_at <= moment + KEY_LIFE_MAX:
        raise Invalid(loc, f"must lie in the future, at most {KEY_LIFE_MAX.days} days ahead")
    held = actor.key.expires_at if actor.key else None
    if held is not None and (expires_at is None or expires_at > held):
        raise Forbidden("A key that expires cannot make one that lives longer.", code="key_outlives_maker")


def revoke_key(actor: Actor, key_id: str) -> None:
    """From the next request on the key is nothing."""
    key = access.key_of(actor, key_id)
    personal = access.actor_for(actor.user, key=actor.key)
    with acting_for(personal.team_id), transaction.atomic():
        ApiKey.objects.filter(id=key.id, revoked_at__isnull=True).update(revoked_at=DatabaseNow())
        record(personal, "key.revoked", kind="key", object_id=key.id)
