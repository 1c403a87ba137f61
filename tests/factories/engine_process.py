"""A real inference server: its own process on a free port, and the ways in that clients use. Our own engine, or vLLM with our
routes in front."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from tests.fixtures.places import REPOSITORY
from trainer.contracts.catalogue import load_catalogue
from trainer.inference.base_model import BaseModel
from trainer.inference.vllm import prepare
from trainer.inference.vllm.command import cpu_command, cpu_environment

START_DEADLINE_S = 90
VLLM_START_DEADLINE_S = 420
VLLM_FOLDER = Path(os.environ.get("ROOTSTOCK_VLLM_DIR") or REPOSITORY / ".rootstock" / "vllm")


@dataclass(frozen=True)
class EngineProcess:
    url: str
    artifacts: Path
    process: subprocess.Popen[bytes]

    def get(self, path: str, **options) -> httpx.Response:
        return httpx.get(self.url + path, timeout=30, **options)

    def post(self, path: str, body: dict, **options) -> httpx.Response:
        return httpx.post(self.url + path, json=body, timeout=60, **options)

    def metric(self, line: str) -> float:
        """A series' value; 0 where it has not been counted yet."""
        rows = self.get("/metrics").text.splitlines()
        return next((float(row.split()[-1]) for row in rows if row.startswith(f"rootstock_engine_{line} ")), 0.0)

    def terminate(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=30)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def engine_process(artifacts: Path, *arguments: str, **environment: str) -> Iterator[EngineProcess]:
    """A healthy server on the tiny model; killed at the end if it is still there."""
    with _process("trainer.inference", artifacts, arguments, environment, START_DEADLINE_S) as engine:
        yield engine


@contextlib.contextmanager
def vllm_process(artifacts: Path) -> Iterator[EngineProcess]:
    """As `engine_process`, with vLLM behind it. Skips where vLLM is not installed."""
    if not prepare.is_ready(VLLM_FOLDER):
        pytest.skip("vLLM is not installed: `make engine-vllm`")
    port = free_port()
    command = cpu_command(prepare.python_of(VLLM_FOLDER), BaseModel.of(load_catalogue()["tiny"]), port=port)
    with (artifacts / "vllm.log").open("wb") as log:
        vllm = subprocess.Popen(
            command, stdout=log, stderr=log, env=cpu_environment() | {"OMP_NUM_THREADS": "1"}, start_new_session=True
        )
    arguments = ("--upstream", f"http://127.0.0.1:{port}", "--base-through-zero-adapter")
    try:
        with _process("trainer.inference.vllm", artifacts, arguments, {}, VLLM_START_DEADLINE_S) as engine:
            yield engine
    finally:
        # Three processes: its own end takes the two workers along only when it is asked politely.
        os.killpg(vllm.pid, signal.SIGKILL)
        vllm.wait()


@contextlib.contextmanager
def _process(
    module: str, artifacts: Path, arguments: tuple[str, ...], environment: dict[str, str], start_deadline_s: float
) -> Iterator[EngineProcess]:
    port = free_port()
    command = [sys.executable, "-m", module, "--model", "tiny", "--artifacts", str(artifacts), "--port", str(port)]
    inherited = {name: value for name, value in os.environ.items() if name != "ROOTSTOCK_POOL_TOKEN"}
    with (artifacts / "engine.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, *arguments], stdout=log, stderr=log, env=inherited | {"OMP_NUM_THREADS": "1"} | environment
        )
    try:
        engine = EngineProcess(f"http://127.0.0.1:{port}", artifacts, process)
        _wait_until_healthy(engine, start_deadline_s)
        yield engine
    finally:
        process.kill()
        process.wait()


def _wait_until_healthy(engine: EngineProcess, deadline_s: float) -> None:
    give_up_at_s = time.monotonic() + deadline_s
    while time.monotonic() < give_up_at_s and engine.process.poll() is None:
        with contextlib.suppress(httpx.TransportError):
            if engine.get("/health").status_code == 200:
                return
        time.sleep(0.1)
    raise AssertionError((engine.artifacts / "engine.log").read_text())


def wait_for(condition, deadline_s: float = 20) -> None:
    """Until another process has done what it does on its own."""
    give_up_at_s = time.monotonic() + deadline_s
    while not condition():
        assert time.monotonic() < give_up_at_s, "it did not happen in time"
        time.sleep(0.02)
