"""The same promises by Docker, where an engine answers (DOCKER_HOST, or the usual socket)."""

import asyncio

import pytest

from trainer.contracts.base import new_id
from trainer.sandboxing.docker import DockerDriver
from trainer.sandboxing.specs import MIB, SandboxEnd, SandboxLimits, SandboxSpec

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def driver() -> DockerDriver:
    driver = DockerDriver()
    if reason := asyncio.run(driver.unavailable()):
        pytest.skip(reason)
    return driver


async def run(driver: DockerDriver, code: str, **limits) -> tuple[SandboxEnd, str]:
    """The end and the output of a container that runs `code`."""
    spec = SandboxSpec(new_id(), ("/usr/bin/python3", "-I", "-c", code), limits=SandboxLimits(**{"deadline_s": 120.0, **limits}))
    sandbox = await driver.start(spec)
    end = await sandbox.wait()
    return end, sandbox.logs()


async def test_a_program_runs_and_its_end_is_recorded(driver):
    end, log = await run(driver, "print('hello'); raise SystemExit(7)")
    assert (end.reason, end.exit_code, log) == ("exit", 7, "hello\n")


async def test_memory_processes_disk_and_time_are_bounded(driver):
    memory, _ = await run(driver, "data = []\nwhile True: data.append(bytearray(2**22))", memory_bytes=128 * MIB)
    assert memory.reason == "oom"
    forks = "import os, time\nfor n in range(100):\n    if os.fork() == 0: time.sleep(60)"
    processes, log = await run(driver, forks, processes_max=30)
    assert "BlockingIOError" in log, processes
    disk, log = await run(driver, "open('/tmp/f', 'wb').write(b'x' * 2**25)", disk_bytes=8 * MIB)
    assert "No space left" in log, disk
    late, _ = await run(driver, "import time; time.sleep(600)", deadline_s=1.0)
    assert late.reason == "timeout"


async def test_there_is_no_network_and_nothing_to_write_to(driver):
    code = """
import os, socket
print(sorted(os.listdir("/sys/class/net")))
for path in ("/x", "/usr/x"):
    try:
        open(path, "w")
        print("wrote", path)
    except OSError:
        pass
"""
    _, log = await run(driver, code)
    assert log == "['lo']\n"
