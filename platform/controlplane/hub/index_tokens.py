"""The text of an index token. Knows its randomness and its hash; does no I/O.

It has 190 bits, so that one plain SHA-256 is enough to store it.
"""

import hashlib
import secrets
from datetime import timedelta

TOKEN_BYTES = 24
EXPIRES_AFTER = timedelta(hours=1)
"""Installers resolve and fetch within minutes; an address that ends up in a lock file shall not work there."""


def new_token() -> str:
    return secrets.token_urlsafe(TOKEN_BYTES)


def digest_of_token(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
