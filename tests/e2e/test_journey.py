"""The whole journey as docs/journey.md shows it: push, train, watch, evaluate three models, deploy, call, see the bill.

Counted (at most nine commands, one file), run as written, and looked at afterwards: what each step must have left behind.
"""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.contract.test_docs import shown_commands
from tests.fixtures.live_stack import Person
from tests.fixtures.places import REPOSITORY
from tests.fixtures.recipes import broken_promise, outputs, read_steps, script

PAGE = REPOSITORY / "docs" / "journey.md"
COMMANDS_MAX = 9
TOPPED_UP_MICROUSD = 5_000_000
VERBS = ["push", "train", "eval", "deployments", "deploy", "chat", "wallet", "wallet"]


def test_it_takes_at_most_nine_commands_and_one_file():
    commands = list(shown_commands(PAGE.read_text()))
    assert [command.split()[0] for command in commands] == VERBS and len(commands) <= COMMANDS_MAX
    steps = read_steps(PAGE)
    assert [step.file for step in steps if step.file] == ["run.toml"]
    lines = [line for step in steps if not step.file for line in step.lines.splitlines()]
    assert len(lines) == len(commands), "every line of the page is one command"


@pytest.mark.heavy
@pytest.mark.timeout(600)
def test_each_step_leaves_what_it_must(make_person: Callable[[], Person], tmp_path: Path):
    person, steps = make_person(), read_steps(PAGE)
    ignored = shutil.ignore_patterns(".prime", "dist", "__pycache__")
    shutil.copytree(REPOSITORY / "examples" / "environments", tmp_path / "examples" / "environments", ignore=ignored)
    done = subprocess.run(
        ["bash", "-c", script(steps)],
        cwd=tmp_path,
        env=person.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    for step, printed in zip(steps, outputs(done.stdout), strict=True):
        assert broken_promise(step, printed) is None, printed
    adapter = trained_and_deployed(person)
    compared_three(person)
    answered_by(adapter, done.stdout)
    bill_is_the_sum_of_its_parts(person)


def asked(person: Person, *words: str) -> dict[str, Any]:
    done = person.prime(*words, "--output", "json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def trained_and_deployed(person: Person) -> dict[str, Any]:
    """The newest adapter of the one run."""
    (run,) = asked(person, "train", "list")["runs"]
    assert run["status"] == "COMPLETED"
    adapters = asked(person, "deployments", "list", "--run", run["id"])["adapters"]
    assert [(one["step"], one["deploymentStatus"]) for one in adapters] == [(4, "DEPLOYED"), (2, "NOT_DEPLOYED")]
    return dict(adapters[0])


def compared_three(person: Person) -> None:
    """One group of three models that have the same tasks in common."""
    evaluations = asked(person, "eval", "list")["evaluations"]
    assert {one["model_name"] for one in evaluations} == {"tiny", "journey@2", "journey@4"}
    compared = asked(person, "eval", "compare", *(one["evaluation_id"] for one in evaluations))
    rows = [(one["evaluation"]["status"], one["quality"]["mean"] is not None) for one in compared["evaluations"]]
    assert rows == [("COMPLETED", True)] * 3


def answered_by(adapter: dict[str, Any], printed: str) -> None:
    """The call's reply names the weights that were deployed."""
    start = printed.rindex('{\n  "id"', 0, printed.rindex('"system_fingerprint"'))
    reply, _ = json.JSONDecoder().raw_decode(printed[start:])
    assert reply["choices"][0]["message"]["content"]
    assert reply["model"] == f"tiny:{adapter['id']}" and reply["system_fingerprint"] == adapter["digest"]


def bill_is_the_sum_of_its_parts(person: Person) -> None:
    """What is left and what each meter took make up what was paid in, and every step is on the bill."""
    wallet, lines = asked(person, "wallet"), asked(person, "wallet", "usage")["items"]
    while (after := asked(person, "wallet"))["balance_microusd"] != wallet["balance_microusd"]:
        # The last call was being billed meanwhile.
        wallet, lines = after, asked(person, "wallet", "usage")["items"]
    assert {line["subject_kind"] for line in lines} >= {"run", "eval", "inference"}
    assert "training_tokens" in {line["meter"] for line in lines}
    assert sum(line["amount_microusd"] for line in lines) == TOPPED_UP_MICROUSD - wallet["balance_microusd"]
