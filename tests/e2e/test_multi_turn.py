"""The example environments of several turns, through the whole stack: pushed, checked, evaluated and trained on."""

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import httpx
import pytest

from tests.fixtures.live_stack import Person
from tests.fixtures.places import REPOSITORY

EXAMPLES = REPOSITORY / "examples"
RUN_DEADLINE_S = 600
OVER = {"COMPLETED", "FAILED", "STOPPED", "PAUSED"}

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1200)]


class Learner:
    """One person who pushes an example, evaluates the base model on it and trains with the example's own configuration."""

    def __init__(self, person: Person, example: str, folder: Path) -> None:
        self._person = person
        self.http = httpx.Client(
            base_url=f"{person.origin}/api/v1",
            headers={"Authorization": f"Bearer {person.key}"},
            timeout=30,
            trust_env=False,
        )
        self._example = example
        source = folder / example
        ignored = shutil.ignore_patterns(".prime", "dist", "__pycache__")
        shutil.copytree(EXAMPLES / "environments" / example, source, ignore=ignored)
        pushed = self.prime("push", str(source))
        self.environment = f"{person.owner}/{example.replace('_', '-')}"
        assert pushed["environment"].startswith(self.environment), pushed

    def prime(self, *arguments: str) -> Any:
        done = self._person.prime(*arguments, "--output", "json")
        assert done.returncode == 0, done.stderr + done.stdout
        try:
            return json.loads(done.stdout)
        except ValueError:
            # A command that follows prints a document a line; the last one is the result.
            return json.loads(done.stdout.strip().splitlines()[-1])

    def get(self, path: str, **query: Any) -> Any:
        response = self.http.get(path, params=query)
        assert response.status_code == 200, response.text
        return response.json()

    def evaluate(self, *arguments: str) -> dict[str, Any]:
        result: dict[str, Any] = self.prime("eval", "run", self.environment, "-m", "tiny", *arguments, "--follow")
        return result

    def train(self, steps: int) -> str:
        config = str(EXAMPLES / "configs" / f"{self._example}.toml")
        started = self.prime("train", config, "--env.0.id", self.environment, "--max_steps", str(steps), "-y")
        run_id: str = started.get("run", started)["id"]
        deadline = time.monotonic() + RUN_DEADLINE_S
        while (run := self.get(f"/rft/runs/{run_id}")["run"])["status"] not in OVER:
            assert time.monotonic() < deadline, run
            time.sleep(1.0)
        assert run["status"] == "COMPLETED", run
        return run_id

    def curve(self, run_id: str, name: str) -> list[float]:
        return [point[name] for point in self.get(f"/rft/runs/{run_id}/metrics")["metrics"]]

    def samples(self, run_id: str, step: int) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.get(f"/rft/runs/{run_id}/samples", step=step, limit=1000)["samples"]
        return rows


def rise(curve: list[float]) -> float:
    return fmean(curve[-5:]) - fmean(curve[:5])


def test_calling_the_right_tool_is_learnt(make_person: Callable[[], Person], tmp_path: Path) -> None:
    learner = Learner(make_person(), "arithmetic_tools", tmp_path)
    before = learner.evaluate("-n", "32", "--max-tokens", "48")
    assert 0.3 < before["avg_score"] < 1.0, before
    run_id = learner.train(24)
    right = learner.curve(run_id, f"reward_part/{learner.environment}/right_answer")
    assert rise(right) > 0.3 and fmean(right[-5:]) > 0.7, right
    assert set(learner.curve(run_id, "broken_prefixes")) == {0.0}
    assert max(learner.curve(run_id, "turns_mean")) <= 3
    assert max(learner.curve(run_id, "mismatch_kl")[:1]) < 1e-4
    assert any(sample["turns"] == 2 and sample["trained"] for sample in learner.samples(run_id, 1))


def test_the_form_of_a_guess_is_learnt_over_several_turns(make_person: Callable[[], Person], tmp_path: Path) -> None:
    learner = Learner(make_person(), "word_guess", tmp_path)
    before = learner.evaluate("-n", "16", "--max-tokens", "12")
    assert before["avg_score"] < 0.5, before
    run_id = learner.train(12)
    assert set(learner.curve(run_id, "turns_mean")) == {4.0}
    assert set(learner.curve(run_id, "broken_prefixes")) == {0.0}
    well_formed = learner.curve(run_id, f"reward_part/{learner.environment}/well_formed")
    assert rise(well_formed) > 0.05, well_formed
