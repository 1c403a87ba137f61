"""Secrets never reach a log line, whatever part of the record they came in."""

import json
import logging

import pytest
from django.conf import settings

from controlplane.core import redaction
from controlplane.core.logs import JsonLineFormatter
from controlplane.teams.keys import generate_key


def logged(message: str, *args: object, exc_info: object = None) -> str:
    record = logging.LogRecord("test", logging.ERROR, __file__, 1, message, args, exc_info)  # type: ignore[arg-type]
    redaction.RedactFilter().filter(record)
    return JsonLineFormatter().format(record)


def test_own_secrets_are_masked_by_value():
    line = logged("key %s and pool %s", settings.SECRET_KEY, settings.POOL_TOKEN)
    assert settings.SECRET_KEY not in line and settings.POOL_TOKEN not in line and redaction.MASK in line


def test_anything_shaped_like_our_keys_is_masked():
    key = generate_key()
    line = logged("Authorization: Bearer " + key.text)
    assert key.text not in line and key.text[-30:] not in line


def test_passwords_in_urls_are_masked():
    assert "hunter2hunter2" not in logged("connecting to redis://:hunter2hunter2@127.0.0.1:1/0")


def test_registered_values_are_masked_in_tracebacks_too():
    redaction.register("a-tenants-token-value")
    try:
        raise RuntimeError("refused a-tenants-token-value")
    except RuntimeError as error:
        line = logged("failed", exc_info=(type(error), error, error.__traceback__))
    assert "a-tenants-token-value" not in line and "RuntimeError" in json.loads(line)["traceback"]


@pytest.mark.parametrize("short", ["", None, "abc"])
def test_short_values_are_not_registered(short: str | None):
    redaction.register(short)
    assert "abcdef" in logged("abcdef")
