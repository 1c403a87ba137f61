"""One builder at a time for a folder that several processes want: an advisory lock on a file beside it.

Knows flock. Refuses to know what is built. The kernel drops the lock when its holder dies, so nothing is ever stuck.
"""

import contextlib
import fcntl
import time
from collections.abc import Iterator
from pathlib import Path

_POLL_S = 0.1


class LockTimeout(Exception):
    """Somebody else has been building for longer than we are willing to wait."""


@contextlib.contextmanager
def exclusive(path: Path, *, deadline_s: float) -> Iterator[None]:
    """Hold the lock file `path` (made if absent). Raises LockTimeout."""
    path.parent.mkdir(parents=True, exist_ok=True)
    give_up_at = time.monotonic() + deadline_s
    with path.open("w") as file:
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > give_up_at:
                    raise LockTimeout(f"{path} is held by another process for more than {deadline_s:g} s") from None
                time.sleep(_POLL_S)
        yield
