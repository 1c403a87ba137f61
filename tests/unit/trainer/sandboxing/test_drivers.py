"""A spec as the arguments of each driver, and which driver a host gets."""

import json
from pathlib import Path

import pytest

from trainer.sandboxing import drivers
from trainer.sandboxing.bubblewrap import box_arguments, box_command, confine_argv
from trainer.sandboxing.cgroups import Group
from trainer.sandboxing.docker import docker_argv
from trainer.sandboxing.specs import MIB, Mount, SandboxLimits, SandboxSpec, SandboxUnavailable

LIMITS = SandboxLimits(cpu_cores=0.5, memory_bytes=256 * MIB, processes_max=40, disk_bytes=8 * MIB, file_bytes=4 * MIB)
SPEC = SandboxSpec(
    sandbox_id="box",
    argv=("/env/bin/python", "-m", "thing"),
    env={"MODE": "x"},
    mounts=(Mount(Path("/env"), "/env"), Mount(Path("/host/run"), "/run/rootstock", writable=True)),
    limits=LIMITS,
    labels={"lease": "c1"},
)


def follows(argv, *words):
    """Whether `words` stand next to each other in `argv`."""
    return any(tuple(argv[index : index + len(words)]) == words for index in range(len(argv)))


def test_a_bubble_has_no_network_no_privileges_and_no_environment_of_ours():
    argv = box_arguments(SPEC, 9)
    for flag in ("--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session", "--clearenv"):
        assert flag in argv
    assert follows(argv, "--cap-drop", "ALL")
    assert follows(argv, "--seccomp", "9")
    assert "--share-net" not in argv
    assert follows(argv, "--setenv", "MODE", "x")


def test_a_bubble_mounts_read_only_unless_told_and_sizes_what_can_be_written():
    argv = box_arguments(SPEC, 9)
    assert follows(argv, "--ro-bind", "/env", "/env")
    assert follows(argv, "--bind", "/host/run", "/run/rootstock")
    assert follows(argv, "--size", str(8 * MIB), "--tmpfs", "/tmp")
    assert argv.index("--remount-ro") > argv.index("/run/rootstock")
    assert not {"/etc", "/home", "/root", "/var"} & set(argv)


def test_a_bubble_counts_processes_inside_and_ends_in_the_command():
    assert box_command(SPEC) == ["/usr/bin/prlimit", "--nproc=40:40", "--", *SPEC.argv]


def test_without_groups_the_process_limits_stand_in():
    plan = json.loads(confine_argv(Group(), LIMITS)[4])
    assert plan["groups"] == []
    assert plan["limits"] == {"CORE": 0, "FSIZE": 4 * MIB, "NOFILE": 1024, "DATA": 256 * MIB}
    assert len(plan["cpus"]) == 1


def test_with_groups_they_enforce_memory_and_cpu():
    group = Group({name: Path("/g") for name in ("memory", "pids", "cpu")}, is_unified=True)
    plan = json.loads(confine_argv(group, LIMITS)[4])
    assert plan["groups"] == ["/g/cgroup.procs"]
    assert "DATA" not in plan["limits"]
    assert plan["cpus"] is None


def test_a_container_has_the_same_limits():
    argv = docker_argv("docker", SPEC, 1000, 1000, profile=Path("/profile.json"))
    assert follows(argv, "--network", "none")
    assert "--read-only" in argv
    assert follows(argv, "--cap-drop", "ALL")
    assert follows(argv, "--security-opt", "no-new-privileges")
    assert follows(argv, "--security-opt", "seccomp=/profile.json")
    assert follows(argv, "--memory", str(256 * MIB), "--memory-swap", str(256 * MIB))
    assert follows(argv, "--pids-limit", "40")
    assert follows(argv, "--cpus", "0.5")
    assert follows(argv, "--ulimit", f"fsize={4 * MIB}")
    assert follows(argv, "--mount", "type=bind,source=/env,target=/env,readonly")
    assert follows(argv, "--mount", "type=bind,source=/host/run,target=/run/rootstock")
    assert any(word.endswith(f"size={8 * MIB}") for word in argv)
    assert follows(argv, "--label", "lease=c1")
    assert argv[-2:] == ["-m", "thing"]


class Driver:
    def __init__(self, name, reason):
        self.name, self._reason = name, reason

    async def unavailable(self):
        return self._reason


def offer(monkeypatch, *, bubblewrap, docker):
    monkeypatch.setattr(drivers, "BubblewrapDriver", lambda: Driver("bubblewrap", bubblewrap))
    monkeypatch.setattr(drivers, "DockerDriver", lambda: Driver("docker", docker))


async def test_auto_prefers_the_driver_that_needs_no_daemon(monkeypatch):
    offer(monkeypatch, bubblewrap=None, docker=None)
    assert (await drivers.choose_driver()).name == "bubblewrap"
    assert (await drivers.choose_driver("docker")).name == "docker"


async def test_auto_falls_to_the_other_driver(monkeypatch):
    offer(monkeypatch, bubblewrap="not installed", docker=None)
    assert (await drivers.choose_driver()).name == "docker"


async def test_what_was_asked_for_is_never_replaced(monkeypatch):
    offer(monkeypatch, bubblewrap="not installed", docker=None)
    with pytest.raises(SandboxUnavailable, match="bubblewrap: not installed"):
        await drivers.choose_driver("bubblewrap")


async def test_a_host_with_neither_says_both_reasons(monkeypatch):
    offer(monkeypatch, bubblewrap="not installed", docker="no engine answers")
    with pytest.raises(SandboxUnavailable, match="bubblewrap: not installed; docker: no engine answers"):
        await drivers.choose_driver()
