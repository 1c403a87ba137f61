"""How often something may be tried: one counter a key, in the database, so that every web process counts together.

Meant for rare and dangerous things (signing in); what is called often is limited where it runs.
"""

from dataclasses import dataclass

from django.db import connection

from controlplane.core.errors import RateLimited

_TAKE = """
    INSERT INTO core_ratewindow AS held (key, tries_count) VALUES (%(key)s, 1)
    ON CONFLICT (key) DO UPDATE SET
        tries_count = CASE WHEN held.window_starts_at > rootstock_now() - make_interval(secs => %(window_s)s)
                           THEN held.tries_count + 1 ELSE 1 END,
        window_starts_at = CASE WHEN held.window_starts_at > rootstock_now() - make_interval(secs => %(window_s)s)
                                THEN held.window_starts_at ELSE rootstock_now() END
    RETURNING tries_count, ceil(extract(epoch FROM window_starts_at - rootstock_now()) + %(window_s)s)::int
"""


@dataclass(frozen=True)
class Limit:
    """At most `tries_max` in any window of `window_s` seconds, counted from the first."""

    name: str
    tries_max: int
    window_s: int

    def take(self, who: str) -> None:
        """Count one try of `who`. Raises RateLimited above the limit, with the seconds to wait."""
        with connection.cursor() as cursor:
            cursor.execute(_TAKE, {"key": f"{self.name}:{who}"[:255], "window_s": self.window_s})
            tries_count, wait_s = cursor.fetchone()
        if tries_count > self.tries_max:
            raise RateLimited("Too many tries.", hint=f"Try again in {wait_s} s.", retry_after_s=wait_s)
