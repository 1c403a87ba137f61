"""The trainer as a process: killed and started again it goes on, asked to stop it stops cleanly."""

import os
import random
import signal
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import httpx
import pytest

from tests.numerics.recorded import TEAM, new_pool, recorded, run_id, spec, step_together
from trainer.contracts.training import OptimizerSpec, RunOpened, StepResult
from trainer.core.tenants import SPEC_NAME

RUN = run_id("process")
TOKEN = "a-pool-token"
STEPS = 8
START_S = 90.0
OPTIMIZER = OptimizerSpec(learning_rate=2e-3)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def trainer(root):
    """A client of a running trainer process; the process is killed at the end if it still runs."""
    port = free_port()
    command = [sys.executable, "-m", "trainer.service", "--model", "tiny", "--artifacts", str(root), "--port", str(port)]
    environment = os.environ | {"ROOTSTOCK_POOL_TOKEN": TOKEN, "OMP_NUM_THREADS": "1"}
    with open(root / "trainer.log", "ab") as log:
        process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
    headers = {"authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=headers, timeout=60.0) as client:
        try:
            _await_health(client, process)
            yield client, process
        finally:
            process.kill()
            process.wait()


def _await_health(client, process) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        assert process.poll() is None, "the trainer ended before it was ready"
        try:
            assert client.get("/health").json()["status"] == "ok"
            return
        except httpx.TransportError:
            time.sleep(0.05)  # a process that starts has no other sign of life to wait for
    raise AssertionError("the trainer was not ready in time")


def open_run(client, token: int) -> RunOpened:
    body = {"team_id": TEAM, "fencing_token": token, "optimizer": OPTIMIZER.model_dump()}
    return RunOpened.model_validate_json(client.put(f"/runs/{RUN}", json=body).raise_for_status().content)


def send(client, given, token: int) -> StepResult:
    body = {"fencing_token": token, "batch": given.model_dump(mode="json")}
    return StepResult.model_validate_json(client.post(f"/runs/{RUN}/steps", json=body).raise_for_status().content)


def straight_digests(root) -> list[str]:
    pool = new_pool(root)
    pool.open(RUN, spec(optimizer=OPTIMIZER))
    return [step_together(pool, [given])[0].adapter_digest for given in recorded(RUN, STEPS, seed=3)]


@pytest.mark.timeout(600)
def test_a_killed_trainer_goes_on_where_it_was(tmp_path):
    batches = recorded(RUN, STEPS, seed=3)
    rng = random.Random(0)
    root = tmp_path / "artifacts"
    root.mkdir()
    digests: list[str] = []
    token = 0
    while len(digests) < STEPS:
        token += 1
        with trainer(root) as (client, process):
            opened = open_run(client, token)
            assert opened.step == len(digests)
            assert not digests or opened.adapter_digest == digests[-1]
            for given in batches[len(digests) : len(digests) + rng.randint(2, 4)]:
                digests.append(send(client, given, token).adapter_digest)
            if rng.random() < 0.5:
                client.post(f"/runs/{RUN}/checkpoints", json={"fencing_token": token}).raise_for_status()
            process.send_signal(signal.SIGKILL)
    assert digests == straight_digests(tmp_path / "straight")
    assert (root / "runs" / RUN / SPEC_NAME).exists()
    assert not [path for path in root.rglob(".*") if path.is_file()], "no half-written file is left behind a reply"


@pytest.mark.timeout(300)
def test_sigterm_ends_the_process_cleanly(tmp_path):
    with trainer(tmp_path) as (client, process):
        open_run(client, 1)
        send(client, recorded(RUN, 1, seed=3)[0], 1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) in {0, -signal.SIGTERM}
    assert "Traceback" not in (tmp_path / "trainer.log").read_text()


def test_an_unknown_model_is_named(tmp_path):
    command = [sys.executable, "-m", "trainer.service", "--model", "huge", "--artifacts", str(tmp_path), "--port", "1"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode != 0 and "no base model 'huge'" in ended.stderr and "tiny" in ended.stderr
