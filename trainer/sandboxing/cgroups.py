"""Control groups for one box: version 1, version 2, or whatever part of them this process may write.

Knows the files under /sys/fs/cgroup. Refuses to know what runs in a group. A host that lets us write none of them is no error:
`Group.enforces` tells the driver which limits it must watch by other means.
"""

import contextlib
import os
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

from trainer.sandboxing.specs import SandboxLimits

PREFIX = "rootstock-"
_PERIOD_US = 100_000
_ABANDONED_AFTER_S = 600.0


@dataclass
class Group:
    """The folders made for one box. Version 2 has one folder, version 1 one per controller."""

    folders: dict[str, Path] = field(default_factory=dict)
    """By controller: memory, pids, cpu, cpuacct."""
    is_unified: bool = False

    @property
    def enforces(self) -> frozenset[str]:
        return frozenset(self.folders)

    @property
    def procs_files(self) -> list[str]:
        return sorted({str(folder / "cgroup.procs") for folder in self.folders.values()})

    def oom_kills(self) -> int:
        if "memory" not in self.folders:
            return 0
        name = "memory.events" if self.is_unified else "memory.oom_control"
        return _field(self.folders["memory"] / name, "oom_kill")

    def memory_peak_bytes(self) -> int | None:
        if "memory" not in self.folders:
            return None
        return _number(self.folders["memory"] / ("memory.peak" if self.is_unified else "memory.max_usage_in_bytes"))

    def cpu_s(self) -> float | None:
        if self.is_unified:
            return _field(next(iter(self.folders.values())) / "cpu.stat", "usage_usec") / 1e6 if self.folders else None
        used_ns = _number(self.folders["cpuacct"] / "cpuacct.usage") if "cpuacct" in self.folders else None
        return None if used_ns is None else used_ns / 1e9

    def kill(self) -> None:
        """SIGKILL to every member. Repeated, because a process may fork between the read and the signal."""
        for _ in range(20):
            members = {pid for folder in self.folders.values() for pid in _members(folder)}
            if not members:
                return
            for pid in members:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def remove(self) -> None:
        """Drop the folders. One that still has a dying member stays for the next sweep."""
        for folder in set(self.folders.values()):
            with contextlib.suppress(OSError):
                folder.rmdir()


class Hierarchy:
    """Where groups can be made on this host. `root` and `own` are parameters so that tests need no kernel."""

    def __init__(self, root: Path = Path("/sys/fs/cgroup"), own: str | None = None) -> None:
        self._root = root
        lines = (own if own is not None else Path("/proc/self/cgroup").read_text()).splitlines()
        self._own = {kind: path for _, kind, path in (line.split(":", 2) for line in lines)}

    def create(self, sandbox_id: str, limits: SandboxLimits) -> Group:
        unified = (self._root / "cgroup.controllers").is_file()
        group = self._create_unified(sandbox_id) if unified else self._create_split(sandbox_id)
        _set_limits(group, limits)
        return group

    def _create_unified(self, sandbox_id: str) -> Group:
        own = self._root / self._own.get("", "/").lstrip("/")
        # A group with members cannot pass controllers down, so a parent that systemd delegated to us is tried as well.
        for parent in [own, *own.parents][:3]:
            if not parent.is_relative_to(self._root) or not os.access(parent, os.W_OK):
                break
            for controller in ("memory", "pids", "cpu"):
                with contextlib.suppress(OSError):
                    (parent / "cgroup.subtree_control").write_text(f"+{controller}")
            folder = _make(parent, sandbox_id)
            if folder and (folder / "memory.max").exists():
                present = {"memory": "memory.max", "pids": "pids.max", "cpu": "cpu.max"}
                return Group({name: folder for name, file in present.items() if (folder / file).exists()}, is_unified=True)
            if folder:
                folder.rmdir()
        return Group(is_unified=True)

    def _create_split(self, sandbox_id: str) -> Group:
        group = Group()
        for controller in ("memory", "pids", "cpu", "cpuacct"):
            base = self._root / controller
            own = base / self._own_path(controller)
            parent = own if own.is_dir() else base
            if os.access(parent, os.W_OK) and (folder := _make(parent, sandbox_id)):
                group.folders[controller] = folder
        return group

    def _own_path(self, controller: str) -> str:
        return next((path.lstrip("/") for kinds, path in self._own.items() if controller in kinds.split(",")), "")


def _make(parent: Path, sandbox_id: str) -> Path | None:
    _sweep(parent)
    folder = parent / f"{PREFIX}{sandbox_id}"
    try:
        folder.mkdir(exist_ok=True)
    except OSError:
        return None
    return folder


def _sweep(parent: Path) -> None:
    """Groups whose owner died empty. The kernel refuses to remove one with members, so nothing alive is lost."""
    for folder in parent.glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            if time.time() - folder.stat().st_mtime > _ABANDONED_AFTER_S:
                folder.rmdir()


def _set_limits(group: Group, limits: SandboxLimits) -> None:
    quota_us = int(limits.cpu_cores * _PERIOD_US)
    if group.is_unified:
        files = {
            "memory": {"memory.max": limits.memory_bytes, "memory.swap.max": 0, "memory.oom.group": 1},
            "pids": {"pids.max": limits.processes_max},
            "cpu": {"cpu.max": f"{quota_us} {_PERIOD_US}"},
        }
    else:
        memory = limits.memory_bytes
        files = {
            "memory": {"memory.limit_in_bytes": memory, "memory.memsw.limit_in_bytes": memory},
            "pids": {"pids.max": limits.processes_max},
            "cpu": {"cpu.cfs_period_us": _PERIOD_US, "cpu.cfs_quota_us": quota_us},
        }
    for controller, values in files.items():
        required = next(iter(values))
        for name, value in values.items():
            if controller in group.folders and not _write(group.folders[controller] / name, value) and name == required:
                _give_up(group, controller)


def _give_up(group: Group, controller: str) -> None:
    folder = group.folders.pop(controller)
    if folder not in group.folders.values():
        folder.rmdir()


def _write(path: Path, value: object) -> bool:
    try:
        path.write_text(str(value))
    except OSError:
        return False
    return True


def _members(folder: Path) -> list[int]:
    try:
        return [int(line) for line in (folder / "cgroup.procs").read_text().split()]
    except OSError:
        return []


def _number(path: Path) -> int | None:
    try:
        return int(path.read_text())
    except (OSError, ValueError):
        return None


def _field(path: Path, name: str) -> int:
    try:
        rows = dict(line.split(maxsplit=1) for line in path.read_text().splitlines() if " " in line)
    except OSError:
        return 0
    return int(rows.get(name, 0))
