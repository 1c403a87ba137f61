"""Signatures of the Standard Webhooks specification 1.0 (standardwebhooks.com): any of its libraries verifies them.

Knows secrets, bytes and headers. Refuses to know rows and to send anything.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable
from datetime import datetime

PREFIX = "whsec_"
KEY_BYTES = 32
"""The specification asks for 24 to 64."""


def new_secret() -> str:
    return PREFIX + base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode()


def headers(event_id: str, body: str, at: datetime, signing_secrets: Iterable[str]) -> dict[str, str]:
    """The three headers of one attempt at `at`; with several secrets a signature of each, for the receiver to find its own."""
    timestamp = str(int(at.timestamp()))
    signed = f"{event_id}.{timestamp}.{body}".encode()
    signatures = " ".join(f"v1,{_signature(secret, signed)}" for secret in signing_secrets)
    return {"webhook-id": event_id, "webhook-timestamp": timestamp, "webhook-signature": signatures}


def _signature(secret: str, signed: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(PREFIX))
    return base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
