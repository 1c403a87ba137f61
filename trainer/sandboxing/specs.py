"""What a sandbox is: the request (`SandboxSpec`), the live handle (`Sandbox`), the record of its end (`SandboxEnd`).

Knows the vocabulary that both drivers share. Refuses to know how a driver enforces any of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

MIB = 1024 * 1024

EndReason = Literal["exit", "timeout", "oom", "processes", "disk", "killed"]
"""Why a sandbox ended: by itself, at its deadline, by a limit on memory, processes or disk, or because its owner said so."""


class SandboxUnavailable(Exception):
    """This host cannot give the isolation that was asked for. Never degraded silently: the text says what to install or allow."""


class SandboxStartFailed(Exception):
    """The box was refused by the host (mounts, namespaces, engine); carries the driver's own words."""


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Every limit has a value: a box without limits cannot be asked for."""

    cpu_cores: float = 1.0
    memory_bytes: int = 2048 * MIB
    processes_max: int = 128
    disk_bytes: int = 512 * MIB
    """Size of /tmp and, apart from it, the most that writable folders of the host may hold."""
    file_bytes: int = 256 * MIB
    open_files_max: int = 1024
    log_bytes: int = 1 * MIB
    deadline_s: float = 3600.0


@dataclass(frozen=True, slots=True)
class Mount:
    """`source` on the host appears at `target` in the box; read-only unless said otherwise."""

    source: Path
    target: str
    writable: bool = False


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """One process tree in one box. The environment holds `env` alone; there is no network but the box's own loopback."""

    sandbox_id: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    workdir: str = "/tmp"
    limits: SandboxLimits = SandboxLimits()
    labels: Mapping[str, str] = field(default_factory=dict)
    """Lease id and fencing token, so that whoever finds the box later knows whose it was."""


@dataclass(frozen=True, slots=True)
class SandboxUsage:
    """Measured use; None where the host offers no way to measure."""

    wall_s: float
    cpu_s: float | None = None
    memory_peak_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class SandboxEnd:
    reason: EndReason
    exit_code: int
    usage: SandboxUsage
    detail: str = ""


class Sandbox(Protocol):
    """A started box. It always ends, at its deadline at the latest, and its end is recorded."""

    @property
    def sandbox_id(self) -> str: ...

    @property
    def alive(self) -> bool: ...

    async def wait(self) -> SandboxEnd:
        """The end, once the last process is gone. May be awaited by several callers, and again."""
        ...

    async def kill(self, detail: str = "") -> SandboxEnd:
        """End the whole process tree now. Idempotent; an end that was there already is returned as it was."""
        ...

    def logs(self) -> str:
        """stdout and stderr so far, capped at `log_bytes`: the first and the last half, with the size of the gap."""
        ...


class Driver(Protocol):
    name: str

    async def unavailable(self) -> str | None:
        """None when this host can run it, else the reason in words that help."""
        ...

    async def start(self, spec: SandboxSpec) -> Sandbox:
        """Raises SandboxUnavailable or SandboxStartFailed."""
        ...
