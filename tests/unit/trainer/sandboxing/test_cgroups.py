"""Groups on version 2, on version 1 and on neither, with a folder in place of the kernel."""

from pathlib import Path

import pytest

from trainer.sandboxing.cgroups import Group, Hierarchy
from trainer.sandboxing.specs import MIB, SandboxLimits

LIMITS = SandboxLimits(cpu_cores=0.5, memory_bytes=64 * MIB, processes_max=33)


@pytest.fixture
def kernel(monkeypatch):
    """A made folder gets the files that the kernel would put there."""
    files = {"memory.max", "memory.swap.max", "memory.oom.group", "pids.max", "cpu.max"}
    files |= {"memory.limit_in_bytes", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpuacct.usage", "cgroup.procs"}
    make = Path.mkdir

    def mkdir(self, *args, **kwargs):
        make(self, *args, **kwargs)
        if self.name.startswith("rootstock-"):
            for name in files:
                (self / name).write_text("")

    monkeypatch.setattr(Path, "mkdir", mkdir)


@pytest.fixture
def version_2(tmp_path, kernel):
    (tmp_path / "app").mkdir()
    for folder in (tmp_path, tmp_path / "app"):
        (folder / "cgroup.controllers").write_text("cpu memory pids")
        (folder / "cgroup.subtree_control").write_text("")
    return Hierarchy(tmp_path, "0::/app\n")


@pytest.fixture
def version_1(tmp_path, kernel):
    for name in ("memory/own", "pids", "cpu", "cpuacct"):
        (tmp_path / name).mkdir(parents=True)
    return Hierarchy(tmp_path, "4:memory:/own\n8:pids:/\n1:cpu,cpuacct:/\n")


def test_version_2_is_one_folder_with_every_limit(version_2, tmp_path):
    group = version_2.create("box", LIMITS)
    folder = tmp_path / "app" / "rootstock-box"
    assert group.enforces == {"memory", "pids", "cpu"}
    assert group.procs_files == [str(folder / "cgroup.procs")]
    assert (folder / "memory.max").read_text() == str(64 * MIB)
    assert (folder / "memory.swap.max").read_text() == "0"
    assert (folder / "pids.max").read_text() == "33"
    assert (folder / "cpu.max").read_text() == "50000 100000"


def test_version_1_is_one_folder_per_controller(version_1, tmp_path):
    group = version_1.create("box", LIMITS)
    assert group.enforces == {"memory", "pids", "cpu", "cpuacct"}
    assert (tmp_path / "memory" / "own" / "rootstock-box" / "memory.limit_in_bytes").read_text() == str(64 * MIB)
    assert (tmp_path / "pids" / "rootstock-box" / "pids.max").read_text() == "33"
    assert (tmp_path / "cpu" / "rootstock-box" / "cpu.cfs_quota_us").read_text() == "50000"
    assert len(group.procs_files) == 4


def test_a_host_without_groups_enforces_nothing_and_says_so(tmp_path):
    group = Hierarchy(tmp_path, "0::/\n").create("box", LIMITS)
    assert group.enforces == frozenset()
    assert group.procs_files == []
    assert group.memory_peak_bytes() is None
    assert group.cpu_s() is None
    group.kill()
    group.remove()


def test_an_oom_kill_is_read_where_the_version_writes_it(tmp_path):
    (tmp_path / "memory.events").write_text("low 0\noom 1\noom_kill 2\n")
    (tmp_path / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    assert Group({"memory": tmp_path}, is_unified=True).oom_kills() == 2
    assert Group({"memory": tmp_path}).oom_kills() == 3
    assert Group().oom_kills() == 0


def test_use_is_read_where_the_version_writes_it(tmp_path):
    (tmp_path / "memory.peak").write_text("123\n")
    (tmp_path / "cpu.stat").write_text("usage_usec 2500000\nuser_usec 1\n")
    (tmp_path / "memory.max_usage_in_bytes").write_text("456\n")
    (tmp_path / "cpuacct.usage").write_text("3500000000\n")
    unified, split = Group({"memory": tmp_path}, is_unified=True), Group({"memory": tmp_path, "cpuacct": tmp_path})
    assert (unified.memory_peak_bytes(), unified.cpu_s()) == (123, 2.5)
    assert (split.memory_peak_bytes(), split.cpu_s()) == (456, 3.5)
