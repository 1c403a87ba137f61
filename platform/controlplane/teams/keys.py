"""The text of an API key: `rsk_<prefix>_<secret><checksum>`. Knows its grammar and its hash; does no I/O.

The checksum lets a mistyped key be refused without a look into the database, and lets scanners recognise a leaked one. The secret
has 190 bits, so one plain SHA-256 is enough to store it.
"""

import hashlib
import hmac
import re
import secrets
import zlib
from dataclasses import dataclass

_PREFIX_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
_SECRET_ALPHABET = _PREFIX_ALPHABET + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_GRAMMAR = re.compile(r"rsk_([a-z0-9]{12})_([A-Za-z0-9]{32})([0-9a-f]{8})")


@dataclass(frozen=True)
class KeyText:
    """A key as its holder has it."""

    prefix: str
    text: str

    def __repr__(self) -> str:
        return f"KeyText(prefix={self.prefix!r})"

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()

    def matches(self, stored_sha256: str) -> bool:
        return hmac.compare_digest(self.sha256, stored_sha256)


def generate_key() -> KeyText:
    prefix = "".join(secrets.choice(_PREFIX_ALPHABET) for _ in range(12))
    body = f"rsk_{prefix}_" + "".join(secrets.choice(_SECRET_ALPHABET) for _ in range(32))
    return KeyText(prefix, body + _checksum(body))


def parse_key(text: str) -> KeyText | None:
    """The key that `text` spells, or None when it cannot be one."""
    match = _GRAMMAR.fullmatch(text)
    if match is None or _checksum(text[:-8]) != match[3]:
        return None
    return KeyText(match[1], text)


def _checksum(body: str) -> str:
    return f"{zlib.crc32(body.encode()):08x}"
