"""Processes of this host as /proc shows them. Knows Linux; refuses to know what they are for."""

from pathlib import Path

STARTED_FIELD = 19
"""Of /proc/<pid>/stat behind the command's closing parenthesis: start time in ticks since boot."""


def started_at(pid: int) -> int | None:
    """When a live process started, in ticks since boot; None when there is none, or only its zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in {"Z", "X"} else int(fields[STARTED_FIELD])
