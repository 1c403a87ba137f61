"""A real inference server: its own process on a free port, and the ways in that clients use."""

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

START_DEADLINE_S = 90


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
    port = free_port()
    command = [sys.executable, "-m", "trainer.inference", "--model", "tiny", "--artifacts", str(artifacts), "--port", str(port)]
    inherited = {name: value for name, value in os.environ.items() if name != "ROOTSTOCK_POOL_TOKEN"}
    with (artifacts / "engine.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, *arguments], stdout=log, stderr=log, env=inherited | {"OMP_NUM_THREADS": "1"} | environment
        )
    try:
        engine = EngineProcess(f"http://127.0.0.1:{port}", artifacts, process)
        _wait_until_healthy(engine)
        yield engine
    finally:
        process.kill()
        process.wait()


def _wait_until_healthy(engine: EngineProcess) -> None:
    give_up_at_s = time.monotonic() + START_DEADLINE_S
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
