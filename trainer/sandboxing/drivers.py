"""Which driver a host uses.

Knows the two drivers. Refuses to degrade: when neither works, or the one that was asked for does not, it says why.
"""

from typing import Literal

from trainer.sandboxing.bubblewrap import BubblewrapDriver
from trainer.sandboxing.docker import DockerDriver
from trainer.sandboxing.specs import Driver, SandboxUnavailable

Backend = Literal["auto", "bubblewrap", "docker"]


async def choose_driver(backend: Backend = "auto") -> Driver:
    """The driver for `backend`; "auto" prefers bubblewrap, which needs no daemon. Raises SandboxUnavailable."""
    candidates: list[Driver] = {"auto": [BubblewrapDriver(), DockerDriver()]}.get(backend) or [
        BubblewrapDriver() if backend == "bubblewrap" else DockerDriver()
    ]
    reasons = []
    for driver in candidates:
        reason = await driver.unavailable()
        if reason is None:
            return driver
        reasons.append(f"{driver.name}: {reason}")
    raise SandboxUnavailable("; ".join(reasons))
