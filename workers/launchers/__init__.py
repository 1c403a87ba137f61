"""Ways to start what a lease allows: today a process of this host. A container or a Kubernetes Job is another `Launcher`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Job:
    """One attempt to start. `variables` hold the attempt's token: they are passed on and written nowhere."""

    name: str
    """Unique, and fit for a file name: `run-<id>-<attempt>`."""
    variables: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class Holder:
    """Where a job runs. `started` tells it from a later process with the same pid."""

    host: str
    pid: int
    started: int


class Launcher(Protocol):
    def start(self, job: Job) -> Holder:
        """Start and return at once; the job outlives the caller. Raises OSError when it cannot be started."""

    def is_lost(self, holder: Holder) -> bool:
        """Whether the job has certainly ended. False where this launcher cannot know."""

    def kill(self, holder: Holder) -> bool:
        """End the job and everything that it started, at once. False when there was nothing left to end."""
