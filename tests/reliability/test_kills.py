"""`kill -9` of each process that a run depends on, once, at work: the run completes, nothing is lost or billed twice, and its
owner can read what happened, to whom and what was done about it.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.fixtures.gates import Gate
from tests.fixtures.own_stack import outside_environment
from tests.fixtures.places import REPOSITORY

PROGRESS_DEADLINE_S = 240
READABLE_S = 60
VICTIMS = {
    "orchestrator": "orchestrator",
    "worker": "worker",
    "runner": "sandbox",
    "trainer": "trainer",
    "beat": "beat",
    "postgres": "database",
    "inference": "engine",
    "web": "web",
    "internal": "internal",
}
"""What is killed, and the component under which its incident is told."""
STEPS_APART = 2
STEPS = STEPS_APART * len(VICTIMS) + 10

pytestmark = [pytest.mark.heavy, pytest.mark.gate("R5"), pytest.mark.timeout(1800)]


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

    def sign_up(self) -> None:
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

    def kill(self, victim: str) -> datetime:
        """SIGKILL to every process of that name; the moment at which it was sent."""
        if victim == "orchestrator":
            pids = self._orchestrators()
        elif victim == "runner":
            pids = [pid for pid in pids_of("trainer.runner") if set(ancestors(pid)) & set(self._orchestrators())]
        else:
            pids = [json.loads((self.root / "supervisor.json").read_text())["services"][victim]["pid"]]
        assert pids
        moment = datetime.now(UTC)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        return moment

    def _orchestrators(self) -> list[int]:
        return [pid for pid in pids_of("trainer.orchestrator") if self._is_ours(pid)]

    def _is_ours(self, pid: int) -> bool:
        try:
            return str(self.root).encode() in Path(f"/proc/{pid}/environ").read_bytes()
        except FileNotFoundError:
            return False


def pids_of(module: str) -> list[int]:
    """Python processes of this host that run the module."""
    found = subprocess.run(["pgrep", "-f", rf"^\S*python\S* .*-m {module}"], capture_output=True, text=True, check=False).stdout
    return [int(pid) for pid in found.split()]


def ancestors(pid: int) -> Iterator[int]:
    while pid > 1:
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        yield pid


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "stack")
    try:
        made.sign_up()
        yield made
    finally:
        made.close()


def start_training(world: World, tmp_path: Path) -> str:
    world.prime("wallet", "top-up", "5")
    source = tmp_path / "digit_sum"
    ignored = shutil.ignore_patterns(".prime", "dist")
    shutil.copytree(REPOSITORY / "examples" / "environments" / "digit_sum", source, ignore=ignored)
    environment = world.prime("push", str(source))["environment"]
    config = str(REPOSITORY / "examples" / "configs" / "digit_sum.toml")
    started = world.prime("train", config, "--env.0.id", environment, "--max_steps", str(STEPS), "-y")
    return str(started.get("run", started)["id"])


def test_a_run_survives_the_death_of_everything_once(world: World, tmp_path: Path, gate: Gate) -> None:
    run_id = start_training(world, tmp_path)
    killed_at = {}
    for number, victim in enumerate(VICTIMS):
        world.until_step(run_id, STEPS_APART * number + 2)
        killed_at[victim] = world.kill(victim)
    run = world.until_step(run_id, STEPS + 1)

    assert run["status"] == "COMPLETED", run
    assert run["attempt"] == 2, "only the orchestrator's own death costs an attempt"
    points = world.get(f"/rft/runs/{run_id}/metrics", limit=1000)["metrics"]
    assert [point["step"] for point in points] == list(range(1, STEPS + 1))
    assert_charged_once(world, run_id, points)
    silent = unread(world, run_id, killed_at)
    gate.record(trials=len(VICTIMS), violations=len(silent))
    assert silent == []


def unread(world: World, run_id: str, killed_at: dict[str, datetime]) -> list[str]:
    """Victims of whose death the log of the page and of `prime train logs` does not tell within a minute, by component."""
    log = world.prime("train", "logs", run_id, "--level", "ERROR", "--tail", "1000")["logs"]
    lines = [json.loads(line) for line in log.splitlines()]
    told = {
        victim: [line["message"] for line in lines if line["component"] == VICTIMS[victim] and is_soon(line, moment)]
        for victim, moment in killed_at.items()
    }
    print(json.dumps(told, indent=1))
    return [victim for victim, messages in told.items() if not messages]


def is_soon(line: dict[str, str], moment: datetime) -> bool:
    return moment <= datetime.fromisoformat(line["timestamp"]) <= moment + timedelta(seconds=READABLE_S)


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
