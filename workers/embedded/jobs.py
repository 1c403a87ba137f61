"""The processes that a stack's workers started and that outlive them: ended when the whole stack goes down.

Knows how such a process can be told from others of this host. Refuses to know what it does: its lease runs out, and the next
start of the stack takes its subject up again.
"""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from controlplane.core.processes import started_at
from trainer.contracts.internal import ATTEMPT_TOKEN_VARIABLE, INTERNAL_URL_VARIABLE

STOP_DEADLINE_S = 10.0
_POLL_S = 0.05


def end_jobs(internal_url: str) -> None:
    """Ask every job of the stack behind `internal_url` to end, and kill what has not within the deadline."""
    jobs = dict(_jobs(internal_url))
    for pid in jobs:
        _signal(pid, signal.SIGTERM)
    deadline = time.monotonic() + STOP_DEADLINE_S
    while (alive := [pid for pid, began in jobs.items() if started_at(pid) == began]) and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    for pid in alive:
        _signal(pid, signal.SIGKILL)


def _jobs(internal_url: str) -> Iterator[tuple[int, int]]:
    """(pid, start in ticks) of each. A service of the stack knows the address too, but only a job holds an attempt's token."""
    token, address = f"{ATTEMPT_TOKEN_VARIABLE}=".encode(), f"{INTERNAL_URL_VARIABLE}={internal_url}".encode()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue  # it ended, or belongs to somebody else
        if address in variables and any(variable.startswith(token) for variable in variables):
            pid = int(folder.name)
            if (began := started_at(pid)) is not None:
                yield pid, began


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.killpg(os.getpgid(pid), number)
    except ProcessLookupError:
        return
