"""`kill -9` of each process that a run depends on, once, at work: the run completes, and nothing is lost or billed twice."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fixtures.own_stack import outside_environment
from tests.fixtures.places import REPOSITORY

STEPS = 24
PROGRESS_DEADLINE_S = 240
VICTIMS = ("orchestrator", "trainer", "inference", "worker", "web", "internal", "postgres")

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1800)]


class World:
    """A whole stack of its own, and one team that trains on it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.home = root / "home" / "team"
        self.environment = outside_environment()
        self._embedded("up")
        port = json.loads((root / "ports.json").read_text())["web"]
        self.origin = f"http://127.0.0.1:{port}"
        self.home.mkdir(parents=True)
        self.key = self.prime("sign-up", "--email", "team@example.org")["api_key"]
        headers = {"Authorization": f"Bearer {self.key}"}
        self.http = httpx.Client(base_url=f"{self.origin}/api/v1", headers=headers, timeout=30, trust_env=False)

    def _embedded(self, command: str) -> None:
        arguments = [sys.executable, "-m", "workers.embedded", command, "--root", str(self.root)]
        subprocess.run(arguments, cwd=REPOSITORY, env=self.environment, check=True, stdin=subprocess.DEVNULL, timeout=400)

    def close(self) -> None:
        self._embedded("down")

    def prime(self, *arguments: str) -> Any:
        environment = {**self.environment, "HOME": str(self.home), "PRIME_API_BASE_URL": self.origin}
        command = [str(Path(sys.executable).parent / "prime"), *arguments, "--output", "json"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stderr + done.stdout
        return json.loads(done.stdout)

    def get(self, path: str, **query: Any) -> Any:
        """Reads again while the web process or its database is being replaced: that is the point of the test."""
        deadline = time.monotonic() + PROGRESS_DEADLINE_S
        while True:
            try:
                response = self.http.get(path, params=query)
                if response.status_code == 200:
                    return response.json()
            except httpx.TransportError as error:
                response = error
            assert time.monotonic() < deadline, response
            time.sleep(0.5)

    def until_step(self, run_id: str, step: int) -> dict[str, Any]:
        """Wait for the run to have committed `step`, or to have ended."""
        deadline = time.monotonic() + PROGRESS_DEADLINE_S
        while True:
            run: dict[str, Any] = self.get(f"/rft/runs/{run_id}")["run"]
            if run["step"] >= step or run["status"] in {"COMPLETED", "FAILED", "STOPPED", "PAUSED"}:
                return run
            assert time.monotonic() < deadline, run
            time.sleep(0.25)

    def kill(self, victim: str) -> None:
        if victim == "orchestrator":
            found = subprocess.run(["pgrep", "-f", "trainer.orchestrator"], capture_output=True, text=True, check=True).stdout
            pids = [int(pid) for pid in found.split() if self._is_ours(int(pid))]
        else:
            pids = [json.loads((self.root / "supervisor.json").read_text())["services"][victim]["pid"]]
        assert pids
        for pid in pids:
            os.kill(pid, signal.SIGKILL)

    def _is_ours(self, pid: int) -> bool:
        try:
            return str(self.root).encode() in Path(f"/proc/{pid}/environ").read_bytes()
        except FileNotFoundError:
            return False


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "stack")
    yield made
    made.close()


def test_a_run_survives_the_death_of_everything_once(world: World, tmp_path: Path) -> None:
    world.prime("wallet", "top-up", "5")
    source = tmp_path / "digit_sum"
    ignored = shutil.ignore_patterns(".prime", "dist")
    shutil.copytree(REPOSITORY / "examples" / "environments" / "digit_sum", source, ignore=ignored)
    environment = world.prime("push", str(source))["environment"]
    config = str(REPOSITORY / "examples" / "configs" / "digit_sum.toml")
    started = world.prime("train", config, "--env.0.id", environment, "--max_steps", str(STEPS), "-y")
    run_id = started.get("run", started)["id"]
    for number, victim in enumerate(VICTIMS):
        world.until_step(run_id, 3 * number + 2)
        world.kill(victim)
    run = world.until_step(run_id, STEPS + 1)

    assert run["status"] == "COMPLETED", run
    assert run["attempt"] >= 2
    points = world.get(f"/rft/runs/{run_id}/metrics")["metrics"]
    assert [point["step"] for point in points] == list(range(1, STEPS + 1))
    assert_charged_once(world, run_id, points)


def assert_charged_once(world: World, run_id: str, points: list[dict[str, Any]]) -> None:
    """Each step's tokens are charged exactly once, and rollouts exactly as their records say."""
    usage = world.get(f"/billing/runs/{run_id}/usage")
    quantity = {row["meter"]: row["quantity"] for row in usage["meters"]}
    assert quantity["training_tokens"] == sum(point["trained_tokens"] for point in points)
    steps = world.get(f"/rft/runs/{run_id}/progress")["stepsWithSamples"]
    pages = [world.get(f"/rft/runs/{run_id}/samples", step=step, limit=1000)["samples"] for step in steps]
    billed = [sample for samples in pages for sample in samples if sample["billed"]]
    assert quantity["rollout_output_tokens"] == sum(sample["output_tokens"] for sample in billed)
    assert quantity["rollout_input_tokens"] == sum(sample["input_tokens"] for sample in billed)
    assert world.get("/billing/ledger", limit=1)["sum_microusd"] == 0
