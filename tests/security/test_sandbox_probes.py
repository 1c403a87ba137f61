"""Tenant code that tries to leave its box, or to use more than its share: refused or ended, and the reason recorded.

Each promise is tried from inside by real code, in the driver's box and, for the probe environment, in a runner's.
"""

import asyncio
import signal
import socket
import sys
import time
from pathlib import Path

import pytest

from tests.fixtures.runner import running
from trainer.contracts.base import new_id
from trainer.sandboxing import runners
from trainer.sandboxing.bubblewrap import BubblewrapDriver
from trainer.sandboxing.cgroups import Hierarchy
from trainer.sandboxing.runners import runner_folder
from trainer.sandboxing.specs import MIB, Mount, SandboxEnd, SandboxLimits, SandboxSpec

PYTHON = "/usr/bin/python3"

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(sys.platform != "linux", reason="boxes need Linux namespaces"),
]


async def run(driver: BubblewrapDriver, code: str, mounts: tuple[Mount, ...] = (), **limits) -> tuple[SandboxEnd, str]:
    """The end and the output of a box that runs `code`."""
    spec = SandboxSpec(
        new_id(), (PYTHON, "-I", "-c", code), mounts=mounts, limits=SandboxLimits(**{"deadline_s": 60.0, **limits})
    )
    sandbox = await driver.start(spec)
    end = await sandbox.wait()
    assert not sandbox.alive
    return end, sandbox.logs()


@pytest.fixture(params=["groups", "no groups"])
def driver(request, sandbox_driver, tmp_path) -> BubblewrapDriver:
    """The host's driver, and one for which no control group can be written."""
    return sandbox_driver if request.param == "groups" else BubblewrapDriver(Hierarchy(tmp_path, "0::/\n"))


async def test_an_ordinary_program_runs_and_its_end_is_recorded(driver):
    end, log = await run(driver, "print('hello'); raise SystemExit(7)")
    assert (end.reason, end.exit_code, log) == ("exit", 7, "hello\n")
    assert end.usage.wall_s > 0


async def test_the_environment_and_the_files_are_the_boxs_own(driver):
    _, log = await run(driver, "import os; print(sorted(os.environ), sorted(os.listdir('/')), os.getuid())")
    assert "ROOTSTOCK" not in log
    for name in ("etc", "home", "root", "var", "srv", "work"):
        assert f"'{name}'" not in log
    assert log.strip().endswith("65534")


async def test_the_box_does_not_show_how_it_was_made(driver, tmp_path):
    code = "print(open('/proc/1/cmdline').read(), open('/proc/1/environ').read(), *open('/proc/self/mountinfo'))"
    spec = SandboxSpec(new_id(), (PYTHON, "-I", "-c", code), env={"SECRET": "precious"}, mounts=(Mount(tmp_path, "/data"),))
    sandbox = await driver.start(spec)
    await sandbox.wait()
    first_process = sandbox.logs().splitlines()[0]
    assert "precious" not in first_process
    assert str(tmp_path) not in first_process


async def test_the_root_is_read_only_and_what_can_be_written_is_sized(driver):
    code = """
for path in ("/x", "/usr/x", "/dev/x", "/run/x"):
    try:
        open(path, "w")
        print("wrote", path)
    except OSError:
        pass
written = 0
try:
    with open("/tmp/big", "wb") as file:
        for _ in range(100):
            file.write(b"x" * 2**20)
            written += 1
except OSError as error:
    print(type(error).__name__, written)
"""
    end, log = await run(driver, code, disk_bytes=8 * MIB)
    assert "wrote" not in log
    assert end.reason == "exit"
    assert int(log.split()[-1]) <= 8


async def test_one_file_cannot_exceed_its_limit(driver):
    code = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nopen('/tmp/f', 'wb').write(b'x' * 2**22)"
    end, log = await run(driver, code, file_bytes=MIB)
    assert end.exit_code == 1
    assert "File too large" in log


async def test_a_writable_folder_of_the_host_cannot_be_filled(driver, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o700)
    code = "import time\nfor n in range(10**6):\n    open(f'/shared/{n}', 'wb').write(b'x' * 2**20)\n    time.sleep(0.02)"
    end, _ = await run(driver, code, (Mount(shared, "/shared", writable=True),), disk_bytes=4 * MIB)
    assert end.reason == "disk"
    assert "/shared" in end.detail


async def test_a_fork_bomb_is_contained(driver):
    code = """
import os, time
count = 0
while True:
    try:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        count += 1
    except OSError as error:
        print(error.errno, count)
        break
"""
    end, log = await run(driver, code, processes_max=40)
    if end.reason == "exit":
        assert log.startswith("11 ")
        assert int(log.split()[1]) <= 40
    else:
        assert end.reason == "processes"


async def test_memory_is_bounded(driver):
    end, log = await run(driver, "data = []\nwhile True:\n    data.append(bytearray(2**22))", memory_bytes=128 * MIB)
    assert end.reason == "oom" or "MemoryError" in log
    assert (end.usage.memory_peak_bytes or 0) <= 160 * MIB


async def test_processor_time_is_bounded(sandbox_driver):
    code = "import time\nend = time.monotonic() + 2\nwhile time.monotonic() < end: pass"
    end, _ = await run(sandbox_driver, code, cpu_cores=0.2)
    assert end.usage.cpu_s is not None
    assert end.usage.cpu_s <= 0.2 * end.usage.wall_s + 0.15


async def test_the_processors_cannot_be_widened_from_inside(driver):
    _, log = await run(
        driver, "import os\ntry:\n    os.sched_setaffinity(0, {0})\nexcept OSError as error:\n    print(error.errno)"
    )
    assert log == "1\n"


async def test_a_box_ends_at_its_deadline_with_everything_in_it(driver):
    code = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
if os.fork() == 0:
    os.setsid()
time.sleep(600)
"""
    end, _ = await run(driver, code, deadline_s=0.5)
    assert (end.reason, end.detail) == ("timeout", "the deadline of 0.5 s passed")
    assert end.usage.wall_s < 30


async def test_output_is_capped_and_a_flood_does_not_stop_the_clock(driver):
    end, log = await run(driver, "while True: print('x' * 1000)", deadline_s=1.0, log_bytes=10_000)
    assert end.reason == "timeout"
    assert len(log) < 10_100
    assert "bytes left out" in log


async def test_a_box_can_be_killed_and_says_why(driver):
    sandbox = await driver.start(SandboxSpec(new_id(), (PYTHON, "-I", "-c", "import time; time.sleep(600)")))
    end = await sandbox.kill("the run was stopped")
    assert (end.reason, end.detail) == ("killed", "the run was stopped")
    assert await sandbox.kill("again") == end


async def test_the_kernel_calls_that_open_a_way_out_are_refused(driver):
    code = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
tries = {
    "mount": (b"none", b"/tmp", b"tmpfs", 0, None), "umount2": (b"/tmp", 0), "ptrace": (16, 1, 0, 0),
    "unshare": (0x10000000,), "chroot": (b"/tmp",), "setns": (0, 0), "process_vm_readv": (1, 0, 0, 0, 0, 0),
}
numbers = {"bpf": 321, "keyctl": 250, "add_key": 248, "perf_event_open": 298, "io_uring_setup": 425, "userfaultfd": 323}
for name, arguments in tries.items():
    print(name, getattr(libc, name)(*arguments), ctypes.get_errno())
import platform
if platform.machine() == "x86_64":
    for name, number in numbers.items():
        print(name, libc.syscall(number, 0, 0, 0, 0, 0), ctypes.get_errno())
"""
    _, log = await run(driver, code)
    for line in log.splitlines():
        assert line.split()[1:] == ["-1", "1"], line


async def test_a_new_user_namespace_is_refused(driver):
    code = "import subprocess; print(subprocess.run(['/usr/bin/unshare', '-U', 'true']).returncode)"
    _, log = await run(driver, code)
    assert log.strip().splitlines()[-1] != "0"


async def test_nothing_outlives_a_box_whose_owner_died(driver, tmp_path):
    """The owner is a process of its own here, and is killed the hard way."""
    ready = tmp_path / "ready"
    ready.mkdir(mode=0o700)
    owner = f"""
import asyncio
from pathlib import Path
from trainer.sandboxing.bubblewrap import BubblewrapDriver
from trainer.sandboxing.specs import Mount, SandboxSpec
code = "import time; open('/ready/in', 'w').close()\\nwhile True: time.sleep(0.05); open('/ready/tick', 'a').write('x')"
async def main():
    mounts = (Mount(Path({str(ready)!r}), "/ready", writable=True),)
    await (await BubblewrapDriver().start(SandboxSpec("{new_id()}", ({PYTHON!r}, "-c", code), mounts=mounts))).wait()
asyncio.run(main())
"""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", owner, cwd=Path(__file__).parents[2])
    await until((ready / "tick").exists)
    process.send_signal(signal.SIGKILL)
    await process.wait()
    await until(lambda: _is_still(ready / "tick"))
    assert _is_still(ready / "tick")


def _is_still(path: Path) -> bool:
    """Two looks, apart by more than the writer's period, see the same size."""
    before = path.stat().st_size
    time.sleep(0.3)  # the only way to see that something does not happen
    return path.stat().st_size == before


async def test_a_link_in_the_shared_folder_does_not_lead_the_host_anywhere(sandbox_driver):
    """The tenant replaces run.sock by a link to a socket of the host: the host's client refuses it."""
    with runner_folder() as folder, runner_folder() as elsewhere, socket.socket(socket.AF_UNIX) as precious:
        precious.bind(str(elsewhere / "s"))
        precious.listen()
        code = f"import os; os.symlink({str(elsewhere / 's')!r}, '/run/rootstock/run.sock')"
        await run(sandbox_driver, code, (Mount(folder, "/run/rootstock", writable=True),))
        assert (folder / "run.sock").is_symlink()
        assert runners._open_socket(folder / "run.sock") == -1


async def test_the_probe_environment_reaches_nothing(make_release, tmp_path):
    """A host file, a host socket and a loopback port, all real and reachable outside, and a dozen other ways."""
    secret = tmp_path / "secret"
    secret.write_text("precious")
    with socket.socket() as listener, socket.socket(socket.AF_UNIX) as database, runner_folder() as folder:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        database.bind(str(folder / ".s.PGSQL.5432"))
        database.listen()
        wanted = {
            "host_file": str(secret),
            "sockets": [str(folder / ".s.PGSQL.5432"), "/run/postgresql/.s.PGSQL.5432", "/var/run/docker.sock"],
            "port": listener.getsockname()[1],
        }
        release = await asyncio.to_thread(make_release, "probe")
        async with running(release, **wanted) as environment:
            end = await environment.play()
    (trace,) = end.traces
    assert end.state == "ok", end
    assert len(trace.metrics) >= 15
    assert {name: value for name, value in trace.metrics.items() if value} == {}
    assert trace.reward == 1.0


async def until(condition) -> None:
    async with asyncio.timeout(60):
        while not await asyncio.to_thread(condition):
            await asyncio.sleep(0.05)
