"""R12: code in a box tries to reach the host in every way that we know, in each backend of this host; nothing works."""

import json
import os
import socket
from pathlib import Path

import pytest

from tests.fixtures.gates import Gate
from trainer.contracts.base import new_id
from trainer.sandboxing.docker import DockerDriver
from trainer.sandboxing.specs import Mount, SandboxLimits, SandboxSpec

PYTHON = "/usr/bin/python3"
PROBES = (Path(__file__).parent / "escape_probes.py").read_text()
PROBES_MIN = 60

pytestmark = pytest.mark.timeout(180)


@pytest.fixture(params=["bubblewrap", "docker"])
async def driver(request, sandbox_driver):
    if request.param == "bubblewrap":
        return sandbox_driver
    docker = DockerDriver()
    if reason := await docker.unavailable():
        pytest.skip(reason)
    return docker


async def escapes(driver, tmp_path: Path, *, mounts: tuple[Mount, ...] = ()) -> tuple[int, list[str]]:
    """How many probes ran, and which of them worked, beside things of the host that are really there."""
    secret = tmp_path / "secret"
    secret.write_text("of the host")
    name = f"rootstock-{new_id()}"
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind("\0" + name)
        abstract.listen()
        arguments = (str(secret), str(listener.getsockname()[1]), name, str(os.getpid()))
        command = (PYTHON, "-I", "-c", PROBES, *arguments)
        spec = SandboxSpec(new_id(), command, mounts=mounts, limits=SandboxLimits(deadline_s=90.0))
        sandbox = await driver.start(spec)
        end = await sandbox.wait()
    assert end.exit_code == 0, sandbox.logs()
    found = json.loads(sandbox.logs().splitlines()[-1])
    return len(found), [probe for probe, worked in found.items() if worked]


@pytest.mark.gate("R12")
async def test_nothing_in_a_box_reaches_the_host(driver, tmp_path: Path, gate: Gate):
    count, worked = await escapes(driver, tmp_path)
    gate.record(trials=count, violations=len(worked))
    assert worked == [] and count >= PROBES_MIN


async def test_r12_turns_red_when_a_folder_of_the_host_is_left_in_the_box(sandbox_driver, tmp_path: Path):
    _, worked = await escapes(sandbox_driver, tmp_path, mounts=(Mount(tmp_path, str(tmp_path)),))
    assert worked == ["read a file of the host"]
