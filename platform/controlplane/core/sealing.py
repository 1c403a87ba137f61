"""Secrets at rest: sealed with a key derived from the installation's secret key, so that a dump of the database reveals none.

Knows bytes and keys. Refuses to know whose secret it is. A value sealed under another secret key cannot be opened.
"""

import base64
import json
from collections.abc import Mapping
from functools import cache

from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

PURPOSE = b"rootstock.sealed-secrets/1"


class SealBroken(RuntimeError):
    """The value was sealed under another secret key, or changed since."""


@cache
def _fernet(secret_key: str) -> Fernet:
    key = HKDF(algorithm=SHA256(), length=32, salt=None, info=PURPOSE).derive(secret_key.encode())
    return Fernet(base64.urlsafe_b64encode(key))


def seal(values: Mapping[str, str]) -> str:
    """Names and values as one opaque text; nothing sealed is the empty text."""
    return seal_text(json.dumps(dict(values))) if values else ""


def seal_text(value: str) -> str:
    return _fernet(settings.SECRET_KEY).encrypt(value.encode()).decode()


def unseal_text(sealed: str) -> str:
    """Raises SealBroken."""
    try:
        return _fernet(settings.SECRET_KEY).decrypt(sealed.encode()).decode()
    except InvalidToken as error:
        raise SealBroken("the secret key has changed since this was sealed") from error


def unseal(sealed: str) -> dict[str, str]:
    if not sealed:
        return {}
    opened: dict[str, str] = json.loads(unseal_text(sealed))
    return opened
