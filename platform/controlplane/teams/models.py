"""Users, teams and what they prove themselves with. Knows columns and constraints; does no I/O.

A team is the tenant. Every user has a personal team, whose slug is the user's public name; shared teams have members.
"""

from typing import ClassVar

from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Lower

from controlplane.core.clock import DatabaseNow
from controlplane.core.models import PublicIdModel, TenantModel

SLUG_PATTERN = r"^[a-z0-9](?:[a-z0-9-]{1,28})[a-z0-9]$"
SLUG_LENGTH_MAX = 30


class Role(models.TextChoices):
    """What a member may do: an ADMIN manages members and money, a MEMBER works."""

    ADMIN = "ADMIN"
    MEMBER = "MEMBER"


class User(AbstractBaseUser, PublicIdModel):
    """A person. `email` is stored in lower case; the password hash is the base class's."""

    email = models.EmailField(unique=True, max_length=254)
    name = models.CharField(max_length=100, default="")

    last_login = None  # The base class's column; sessions and keys say more.
    USERNAME_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        constraints = (models.CheckConstraint(condition=models.Q(email=Lower("email")), name="user_email_lower"),)


class Team(PublicIdModel):
    """The tenant. `personal_of` is set for a user's own team and null for a shared one."""

    slug = models.CharField(unique=True, max_length=SLUG_LENGTH_MAX)
    name = models.CharField(max_length=100)
    personal_of = models.OneToOneField(User, null=True, on_delete=models.PROTECT, related_name="personal_team")

    class Meta:
        constraints = (models.CheckConstraint(condition=models.Q(slug__regex=SLUG_PATTERN), name="team_slug_shape"),)


class Membership(TenantModel):
    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="memberships")
    user_id: str
    role = models.CharField(max_length=16, choices=Role.choices, default=Role.MEMBER)

    class Meta:
        constraints = (models.UniqueConstraint(fields=["team", "user"], name="membership_once"),)


class ApiKey(TenantModel):
    """`prefix` finds the row; the rest of the key is known to its holder alone, we keep its SHA-256.

    The row belongs to the user's personal team; the key acts for every team of its user. `scopes` null means everything.
    """

    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="api_keys")
    user_id: str
    name = models.CharField(max_length=100)
    prefix = models.CharField(unique=True, max_length=12)
    secret_sha256 = models.CharField(max_length=64)
    scopes = ArrayField(models.CharField(max_length=64), null=True)
    limits: "models.JSONField[dict[str, int], dict[str, int]]" = models.JSONField(default=dict)
    expires_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    last_used_at = models.DateTimeField(null=True)


class LoginChallenge(PublicIdModel):
    """One `prime login`: the terminal shows `code`, a signed-in user approves it, the terminal fetches the encrypted key once."""

    code = models.CharField(unique=True, max_length=32)
    status_token_sha256 = models.CharField(max_length=64)
    encryption_public_key = models.TextField()
    limits: "models.JSONField[dict[str, int], dict[str, int]]" = models.JSONField(default=dict)
    expires_at = models.DateTimeField(db_default=DatabaseNow())
    result = models.TextField(null=True)
    fetched_at = models.DateTimeField(null=True)
