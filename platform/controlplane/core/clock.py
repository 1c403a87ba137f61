"""The one clock: the database's. Leases, expiry and timestamps of all processes read it, and tests can shift it.

Knows the SQL function `rootstock_now()`: the start of the statement plus the shift of the table `core_clock_shift`, which the
application's role may read and not write. Refuses to read the host's clock.
"""

from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import DateTimeField, Func


class DatabaseNow(Func):
    """`rootstock_now()` in a query or as a column's `db_default`."""

    function = "rootstock_now"
    output_field: Any = DateTimeField()


def now() -> datetime:
    """Database time, UTC aware."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT rootstock_now()")
        moment: datetime = cursor.fetchone()[0]
    return moment
