"""Tries to leave its sandbox. Every metric is 1.0 when the attempt succeeded, 0.0 when it was refused."""

from collections.abc import Iterator

import verifiers.v1 as vf

from probe import attempts

__all__ = ["ProbeTaskset"]


class ProbeConfig(vf.TasksetConfig):
    """What to reach for: a file, Unix sockets and a loopback port, all of them real outside of the sandbox."""

    host_file: str = "/etc/passwd"
    sockets: list[str] = []
    port: int = 22


class ProbeData(vf.TaskData):
    host_file: str
    sockets: list[str]
    port: int


class ProbeTask(vf.Task[ProbeData]):
    @vf.reward
    async def contained(self, task: ProbeData) -> float:
        return float(not any(reached(task).values()))

    @vf.metric
    async def reached(self, task: ProbeData) -> dict[str, float]:
        return reached(task)


class ProbeTaskset(vf.Taskset[ProbeTask, ProbeConfig]):
    def load(self) -> Iterator[ProbeTask]:
        wanted = {"host_file": self.config.host_file, "sockets": self.config.sockets, "port": self.config.port}
        yield ProbeTask(ProbeData(prompt="1+1?", **wanted), self.config.task)


def reached(task: ProbeData) -> dict[str, float]:
    tries = {
        "host_file": attempts.reads(task.host_file),
        "passwd": attempts.reads("/etc/passwd"),
        "proc_of_host": attempts.reads(f"/proc/1/root{task.host_file}"),
        "home": attempts.lists("/root", "/home"),
        "socket": any(attempts.connects_unix(path) for path in [*task.sockets, "\0rootstock-probe"]),
        "any_socket": attempts.finds_socket("/run", "/var", "/tmp"),
        "loopback": attempts.connects("127.0.0.1", task.port),
        "network": attempts.connects("1.1.1.1", 80),
        "vsock": attempts.opens_vsock(),
        "mount": attempts.calls("mount", b"none", b"/tmp", b"tmpfs", 0, None),
        "ptrace": attempts.calls("ptrace", 16, 1, 0, 0),
        "namespace": attempts.calls("unshare", 0x10000000),
        "chroot": attempts.calls("chroot", b"/tmp"),
        "setuid": attempts.calls("setuid", 0),
        "write_usr": attempts.writes("/usr/probe"),
        "write_base": attempts.writes(f"{attempts.base_site_packages()}/probe.py"),
        "write_code": attempts.writes("/rootstock/trainer/probe.py"),
    }
    return {name: float(value) for name, value in tries.items()}
