"""Keeps secrets out of logs, by value: what was registered, and whatever looks like one of our keys, is masked.

Knows the values of this process's own secrets. Refuses to know log formats.
"""

import logging
import re
from functools import lru_cache

from django.conf import settings

from trainer.contracts.redaction import MASK, Redactor

_KEY_SHAPED = re.compile(r"\brsk_[a-z0-9]{12}_[A-Za-z0-9]{20,}")
_URL_PASSWORD = re.compile(r"(?<=://)([^/\s:@]*):([^/\s@]+)(?=@)")
_registered = Redactor()


def register(secret: str | None) -> None:
    """Mask this value wherever it would be logged. Short values would mask ordinary words and are passed over."""
    _registered.learn([secret] if secret else [])


def redact(text: str) -> str:
    text = _registered.text(_own(settings.SECRET_KEY, settings.POOL_TOKEN or "").text(text))
    return _KEY_SHAPED.sub(MASK, _URL_PASSWORD.sub(rf"\1:{MASK}", text))


@lru_cache(maxsize=1)
def _own(*secrets: str) -> Redactor:
    return Redactor(secrets)


class RedactFilter(logging.Filter):
    """Renders the record's text and masks it; the traceback is masked by the formatter, which renders it."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.msg, record.args = redact(record.getMessage()), ()
        return True
