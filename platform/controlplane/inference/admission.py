"""How many requests of one team may be in flight in this process. Knows counts; refuses to know requests.

One busy team then cannot take every connection to the engines. With several web processes the limit holds in each.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from controlplane.inference.errors import TooManyAtOnce

TEAM_CONCURRENCY_MAX = 64
_in_flight: Counter[str] = Counter()


@contextmanager
def slot(team_id: str, *, limit: int | None = None) -> Iterator[None]:
    """Holds one of the team's places. Raises TooManyAtOnce when there is none: a caller waits, we do not queue."""
    most = TEAM_CONCURRENCY_MAX if limit is None else limit
    if _in_flight[team_id] >= most:
        raise TooManyAtOnce(most)
    _in_flight[team_id] += 1
    try:
        yield
    finally:
        _in_flight[team_id] -= 1
        if not _in_flight[team_id]:
            del _in_flight[team_id]
