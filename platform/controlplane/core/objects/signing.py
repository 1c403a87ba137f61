"""Signed addresses of local objects: an HMAC over method, key, end and size limit. Knows no files and no requests.

Time is the database's, as everywhere.
"""

import hashlib
import hmac
from urllib.parse import quote, urlencode

from django.conf import settings
from pydantic import BaseModel, ConfigDict

from controlplane.core import clock
from controlplane.core.errors import Forbidden

_PURPOSE = b"rootstock.objects/1"


class Permit(BaseModel):
    """The query string of a signed address."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    expires: int
    size_max: int = 0
    signature: str


def sign(method: str, key: str, expires_s: int, size_max: int = 0) -> str:
    """`key?expires=…&size_max=…&signature=…`: whoever has it may do `method` once or often, until `expires`."""
    expires = int(clock.now().timestamp()) + expires_s
    query = {"expires": expires, "size_max": size_max, "signature": _signature(method, key, expires, size_max)}
    return f"{quote(key)}?{urlencode(query)}"


def check(method: str, key: str, permit: Permit) -> None:
    """Raises Forbidden unless the permit was made by `sign` for just this and has not ended."""
    wanted = _signature(method, key, permit.expires, permit.size_max)
    if not hmac.compare_digest(wanted, permit.signature):
        raise Forbidden("The signature of this address is wrong.", code="bad_signature", hint="Ask for a new address.")
    if permit.expires <= clock.now().timestamp():
        raise Forbidden("This address has expired.", code="expired", hint="Ask for a new address.")


def _signature(method: str, key: str, expires: int, size_max: int) -> str:
    secret = hmac.digest(settings.SECRET_KEY.encode(), _PURPOSE, hashlib.sha256)
    return hmac.new(secret, f"{method}\n{key}\n{expires}\n{size_max}".encode(), hashlib.sha256).hexdigest()
