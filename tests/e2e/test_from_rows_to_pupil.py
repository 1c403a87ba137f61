"""SFT → RL → distillation by configuration, through the whole stack: rows that were uploaded, what goes on from them, what it
costs, and that it is served."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from tests.e2e.test_multi_turn import Learner
from tests.fixtures.live_stack import Person

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(600)]
TOLD_WITHIN_S = 60.0
CONTEXT = 2048

TAUGHT = """
name = "taught"
model = "tiny"
max_steps = 50
batch_size = 8
learning_rate = 5e-3
lora_rank = 8
[optimizer]
warmup_steps = 1
schedule = "cosine"
[[dataset]]
id = "sum-rows"
epochs = 2
"""
REWARDED = """
name = "rewarded"
model = "tiny"
max_steps = 5
batch_size = 32
rollouts_per_example = 8
learning_rate = 1e-3
lora_rank = 8
checkpoint_id = "{checkpoint}"
[sampling]
max_tokens = 8
[[env]]
id = "{environment}"
"""
PUPIL = """
name = "pupil"
model = "tiny"
max_steps = 20
batch_size = 32
rollouts_per_example = 1
max_off_policy_steps = 2
learning_rate = 5e-3
lora_rank = 8
[optimizer]
warmup_steps = 1
[algorithm]
id = "opd"
[teacher]
model = "tiny:{teacher}"
[sampling]
max_tokens = 8
[[env]]
id = "{environment}"
"""
REFUSED = """
name = "refused"
model = "tiny"
[[dataset]]
id = "long-rows"
"""


class Course(Learner):
    """What one person does from rows to a pupil, each run by a file."""

    def __init__(self, person: Person, folder: Path) -> None:
        super().__init__(person, "digit_sum", folder)
        self._folder = folder

    def push(self, name: str, rows: list[dict[str, str]]) -> dict[str, Any]:
        file = self._folder / f"{name}.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in rows))
        pushed: dict[str, Any] = self.prime("datasets", "push", str(file))
        return pushed

    def start(self, config: str, *arguments: str, **names: str) -> dict[str, Any]:
        file = self._folder / "run.toml"
        file.write_text(config.format(environment=self.environment, **names))
        run: dict[str, Any] = self.prime("train", str(file), "-y", *arguments)["run"]
        return run

    def finished(self, config: str, **names: str) -> str:
        """The id of a run that has ended well; one that has not is a failure of the command."""
        return str(self.start(config, "--follow", **names)["id"])

    def adapter(self, run_id: str) -> str:
        return str(self.prime("deployments", "list", "--run", run_id)["adapters"][0]["id"])

    def answer(self, adapter: str, question: str) -> dict[str, Any]:
        messages = [{"role": "user", "content": question}]
        body = {"model": f"tiny:{adapter}", "messages": messages, "max_tokens": 8, "temperature": 0}
        origin = str(self.http.base_url).removesuffix("/api/v1/")
        reply = self.http.post(f"{origin}/api/inference/v1/chat/completions", json=body)
        assert reply.status_code == 200, reply.text
        answer: dict[str, Any] = reply.json()
        return answer


@pytest.fixture(scope="module")
def course(make_person: Callable[[], Person], tmp_path_factory: pytest.TempPathFactory) -> Course:
    return Course(make_person(), tmp_path_factory.mktemp("course"))


def sums() -> list[dict[str, str]]:
    """Pairs of digits, less a third of them, which are thus held out from the rows and asked for by the environment."""
    pairs = [(x, y) for x in range(1, 10) for y in range(1, 10) if (x + 2 * y) % 3]
    return [{"prompt": f"{x}+{y}?", "completion": f"sum {x + y}"} for x, y in pairs]


def test_rows_then_rewards_then_a_teacher(course: Course) -> None:
    pushed = course.push("sum-rows", sums())
    assert (pushed["report"]["kept"], pushed["report"]["dropped"]) == (54, 0)

    taught = course.finished(TAUGHT)
    losses = course.curve(taught, "ce_loss")
    assert len(losses) == 14 and fmean(losses[-3:]) < losses[0] / 2, losses
    assert course.curve(taught, "learning_rate")[-1] < 1e-3, "the cosine ends with the epochs"
    bill = course.get(f"/billing/runs/{taught}/usage")
    assert {line["meter"] for line in bill["meters"]} == {"training_tokens"} and bill["total_cost_microusd"] > 0

    checkpoint = course.get(f"/rft/runs/{taught}/checkpoints")["checkpoints"][0]["id"]
    rewarded = course.finished(REWARDED, checkpoint=checkpoint)
    rewards = course.curve(rewarded, "reward")
    assert rewards[0] > 0.5, f"the base model reaches a quarter; what was taught is not there: {rewards}"
    assert fmean(rewards[1:]) > 0.5, f"training by rewards has unlearnt it: {rewards}"

    pupil = course.finished(PUPIL, teacher=course.adapter(rewarded))
    followed = course.curve(pupil, "reward")
    assert fmean(followed[:2]) < 0.5 and fmean(followed[-5:]) > fmean(followed[:2]) + 0.2, followed

    served = course.adapter(pupil)
    course.prime("deployments", "create", served)
    answers = {x: course.answer(served, f"{x}+4?") for x in range(1, 10)}
    right = [x for x, answer in answers.items() if answer["choices"][0]["message"]["content"] == f"sum {x + 4}"]
    assert len(right) >= 5 and all(answer["system_fingerprint"] for answer in answers.values()), answers


def test_rows_that_the_model_cannot_take_are_told_within_a_minute(course: Course) -> None:
    course.push("long-rows", [*sums()[:8], *[{"prompt": "1+1?", "completion": "2" * CONTEXT}] * 2])
    started_s = time.monotonic()
    run_id = course.start(REFUSED)["id"]
    while (run := course.get(f"/rft/runs/{run_id}")["run"])["status"] != "FAILED":
        assert time.monotonic() < started_s + TOLD_WITHIN_S, run
        time.sleep(0.5)
    told = run["failureAnalysis"]
    assert told["code"] == "dataset_refused" and "2 dropped" in told["rootCause"], told
    assert told["detail"]["reasons"] == {f"longer than the model's context of {CONTEXT} tokens": 2}
    assert course.get(f"/billing/runs/{run_id}/usage")["total_cost_microusd"] == 0
