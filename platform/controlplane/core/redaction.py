"""Keeps secrets out of logs, by value: what was registered, and whatever looks like one of our keys, is masked.

Knows the values of this process's own secrets. Refuses to know log formats.
"""

import logging
import re

from django.conf import settings

MASK = "[redacted]"
SECRET_LENGTH_MIN = 8
_KEY_SHAPED = re.compile(r"\brsk_[a-z0-9]{12}_[A-Za-z0-9]{20,}")
_URL_PASSWORD = re.compile(r"(?<=://)([^/\s:@]*):([^/\s@]+)(?=@)")
_registered: set[str] = set()


def register(secret: str | None) -> None:
    """Mask this value wherever it would be logged. Short values would mask ordinary words and are refused."""
    if secret and len(secret) >= SECRET_LENGTH_MIN:
        _registered.add(secret)


def redact(text: str) -> str:
    for secret in (*_registered, settings.SECRET_KEY, settings.POOL_TOKEN or settings.SECRET_KEY):
        text = text.replace(secret, MASK)
    return _KEY_SHAPED.sub(MASK, _URL_PASSWORD.sub(rf"\1:{MASK}", text))


class RedactFilter(logging.Filter):
    """Renders the record's text and masks it; the traceback is masked by the formatter, which renders it."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = redact(record.getMessage()), ()
        return True
