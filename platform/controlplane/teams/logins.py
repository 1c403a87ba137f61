"""`prime login`, from the terminal's question to the key: begin, approve in the browser, fetch once.

The terminal proves itself with a token that only it has; the person proves themselves by being signed in. The key is stored
encrypted for the terminal, and only until it is fetched.
"""

import hashlib
import hmac
import secrets
from datetime import timedelta

from django.db import transaction

from controlplane.core.clock import DatabaseNow
from controlplane.core.errors import Conflict, Unauthorized
from controlplane.teams import access, services
from controlplane.teams.actors import Actor
from controlplane.teams.login_crypto import encrypt, load_public_key
from controlplane.teams.models import LoginChallenge

CHALLENGE_LIFE_S = 15 * 60
_CODE_ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
CODE_LENGTH = 12


def begin_login(*, public_key_pem: str, limits: dict[str, int]) -> tuple[LoginChallenge, str]:
    """A challenge and the token with which its terminal asks for the result."""
    load_public_key(public_key_pem)
    token = secrets.token_urlsafe(32)
    challenge = LoginChallenge.objects.create(
        code="".join(secrets.choice(_CODE_ALPHABET) for _ in range(CODE_LENGTH)),
        status_token_sha256=_hash(token),
        encryption_public_key=public_key_pem,
        limits=limits,
        expires_at=DatabaseNow() + timedelta(seconds=CHALLENGE_LIFE_S),
    )
    return challenge, token


@transaction.atomic
def approve_login(actor: Actor, code: str) -> None:
    """Give the terminal a key of the actor's user. Raises NotFound, or Conflict when it was approved already."""
    challenge = access.open_challenge(code, lock=True)
    if challenge.result is not None or challenge.fetched_at is not None:
        raise Conflict("This login request was approved already.", code="already_approved")
    _, text = services.create_key(actor, name="prime login", limits=challenge.limits)
    challenge.result = encrypt(text, challenge.encryption_public_key)
    challenge.save(update_fields=["result"])


@transaction.atomic
def fetch_login(code: str, token: str | None) -> str | None:
    """The encrypted key, once; None while nobody has approved. Afterwards the challenge is as if expired."""
    challenge = access.open_challenge(code, lock=True)
    if token is None or not hmac.compare_digest(_hash(token), challenge.status_token_sha256):
        raise Unauthorized("This is not the terminal that asked.", code="wrong_token")
    result = challenge.result
    if result is not None:
        LoginChallenge.objects.filter(id=challenge.id).update(result=None, fetched_at=DatabaseNow(), expires_at=DatabaseNow())
    return result


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
