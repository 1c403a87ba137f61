"""How often something may be done: token buckets in the database, so that all web processes count together.

PostgreSQL and not Valkey: it is there anyway, a request that is counted reads it already, its clock is the one that expiry
uses, and a second store would be a second way to fail. The table is unlogged: a crash forgets counts and costs no write-ahead
log. A bucket holds `burst` tokens and is refilled evenly in `window_s` seconds; one statement takes from every bucket that a
request draws on. Refuses to know users, keys and teams beyond a text that names them.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import IPv6Address, ip_address
from typing import Any, Protocol

from django.conf import settings
from django.db import connection

from controlplane.core.clock import DatabaseNow
from controlplane.core.errors import RateLimited
from controlplane.core.models import RateBucket

FORGOTTEN_AFTER = timedelta(days=1)
"""No window is longer, so that a bucket untouched for a day is full."""
_FILLED = """LEAST(excluded.burst, held.tokens
             + GREATEST(0, extract(epoch FROM rootstock_now() - held.filled_at)) * excluded.burst / excluded.window_s)"""
# In the order of the names: two requests that share buckets then never wait for each other in a circle.
_TAKE = f"""
    INSERT INTO core_ratebucket AS held (name, tokens, burst, window_s, is_granted, filled_at)
    SELECT name, burst - 1, burst, window_s, true, rootstock_now()
    FROM unnest(%(names)s::text[], %(bursts)s::int[], %(windows)s::int[]) AS asked (name, burst, window_s) ORDER BY name
    ON CONFLICT (name) DO UPDATE SET
        tokens = {_FILLED} - CASE WHEN {_FILLED} >= 1 THEN 1 ELSE 0 END,
        is_granted = {_FILLED} >= 1, burst = excluded.burst, window_s = excluded.window_s, filled_at = rootstock_now()
    RETURNING tokens, burst, window_s, is_granted
"""


class Caller(Protocol):
    """Whoever a request is counted for."""

    @property
    def team_id(self) -> str: ...
    @property
    def credential_id(self) -> str: ...


@dataclass(frozen=True)
class Allowance:
    """What a bucket held after a request was counted."""

    tokens: float
    burst: int
    window_s: int
    is_granted: bool

    @property
    def retry_after_s(self) -> int:
        """Seconds until one token is there."""
        return max(1, math.ceil((1 - self.tokens) * self.window_s / self.burst))

    def headers(self) -> dict[str, str]:
        reset_s = math.ceil((self.burst - self.tokens) * self.window_s / self.burst)
        left = str(max(0, int(self.tokens)))
        return {"RateLimit-Limit": str(self.burst), "RateLimit-Remaining": left, "RateLimit-Reset": str(reset_s)}


@dataclass(frozen=True)
class Limit:
    """At most `burst` at once, and as many in every `window_s` seconds."""

    name: str
    burst: int
    window_s: int

    def take(self, who: str) -> Allowance:
        """Count one try of `who`. Raises RateLimited where the bucket is empty."""
        return take([(self, who)])


def take(asked: Sequence[tuple[Limit, str]]) -> Allowance:
    """Count one request against each limit; answers the allowance that is nearest its end.

    Raises RateLimited, with the seconds to wait, where one of the buckets is empty.
    """
    given: dict[str, Any] = {
        "names": [f"{limit.name}:{who}"[:255] for limit, who in asked],
        "bursts": [limit.burst for limit, _ in asked],
        "windows": [limit.window_s for limit, _ in asked],
    }
    with connection.cursor() as cursor:
        cursor.execute(_TAKE, given)
        found = [Allowance(*row) for row in cursor.fetchall()]
    tightest = min(found, key=lambda one: (one.is_granted, one.tokens / one.burst))
    if not tightest.is_granted:
        wait_s = tightest.retry_after_s
        hint = f"Try again in {wait_s} s."
        raise RateLimited("Too many requests.", hint=hint, retry_after_s=wait_s, headers=tightest.headers())
    return tightest


def take_request(caller: Caller | None, address: str) -> Allowance:
    """Count one request of the API: for the credential and its team, or for a visitor's address."""
    if caller is None:
        return Limit("visitor", settings.VISITOR_REQUESTS_PER_MINUTE, 60).take(network_of(address))
    key, team = settings.KEY_REQUESTS_PER_MINUTE, settings.TEAM_REQUESTS_PER_MINUTE
    return take([(Limit("key", key, 60), caller.credential_id), (Limit("team", team, 60), caller.team_id)])


def take_inference(caller: Caller) -> Allowance:
    """Count one request to a model. They are many and short, so that the API's own limits do not suit them."""
    return Limit("inference", settings.INFERENCE_REQUESTS_PER_MINUTE, 60).take(caller.team_id)


def address_of(meta: dict[str, Any]) -> str:
    """The peer. Behind a proxy, uvicorn's `--proxy-headers` has put the client's address there."""
    return str(meta.get("REMOTE_ADDR") or "unknown")


def network_of(address: str) -> str:
    """Whom an address belongs to, as far as can be told: a household holds 2^64 addresses of IPv6."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address
    return f"{int(parsed) >> 64:x}::/64" if isinstance(parsed, IPv6Address) else address


def sweep() -> int:
    """Remove buckets that are full again by now."""
    removed, _ = RateBucket.objects.filter(filled_at__lt=DatabaseNow() - FORGOTTEN_AFTER).delete()
    return removed
