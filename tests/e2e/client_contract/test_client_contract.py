"""The public clients, unmodified, against the whole stack: every essential row of their wire is asked for and answered.

They reach the stack through a proxy that lets them reach nothing else. `reports/client-contract.json` keeps, for each row, the
client and the command that showed it.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from tests.e2e.browser.chromium import find_chromium, running_chromium, sign_in_by_cookie
from tests.e2e.client_contract.clients import missing
from tests.e2e.client_contract.plan import ACCOUNT, LAB, LANES, LOGIN
from tests.e2e.client_contract.rows import PENDING, Row, rows
from tests.e2e.client_contract.terminal import Outcome, Terminal
from tests.e2e.client_contract.witness import witnessed
from tests.fixtures.live_stack import Person
from tests.fixtures.places import REPOSITORY

REPORT = REPOSITORY / "reports" / "client-contract.json"
SCRIPTS = Path(__file__).with_name("scripts")
CHALLENGE = re.compile(r"/dashboard/tokens/challenge\?code=([\w-]+)")
LOGIN_DEADLINE_S = 60

LORA_TOML = """
model = "tiny"
max_steps = 2
batch_size = 16
rollouts_per_example = 8
learning_rate = 1e-3
[sampling]
max_tokens = 8
[[env]]
id = "{owner}/sums"
name = "sums"
[checkpoints]
interval = 1
[adapters]
interval = 1
"""
# It is stopped and restarted at work, and must not end before.
WHOLE_TOML = """
max_steps = 60
[model]
name = "tiny"
[trainer.model.lora]
rank = 8
[orchestrator]
batch_size = 16
group_size = 8
[[orchestrator.train.env]]
id = "{owner}/sums"
"""
PACK_TOML = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "{name}"
version = "0.1.0"
description = "A package without dependencies."
[tool.hatch.build.targets.wheel]
packages = ["{module}"]
"""


@pytest.mark.heavy
@pytest.mark.timeout(900)
def test_every_essential_row_is_answered_to_clients_as_they_were_published(
    make_person: Callable[[], Person], tmp_path: Path
) -> None:
    if absent := missing():
        pytest.skip(f"not installed: {', '.join(absent)}; `make clients` installs them")
    person = make_person()
    known = _world(tmp_path, person)
    with _terminals(person, tmp_path, known) as terminals:
        first = next(iter(terminals.values()))
        _log_in(first)
        first.take_all(ACCOUNT)
        for terminal in terminals.values():
            terminal.known |= first.known
        with ThreadPoolExecutor(len(LANES)) as pool:
            list(pool.map(lambda lane: terminals[lane].take_all(LANES[lane]), LANES))
        outcomes = [outcome for terminal in terminals.values() for outcome in terminal.outcomes]
        refused = [place for terminal in terminals.values() for place in terminal.witness.refused]
    report = _report(outcomes) | {"refused": refused}
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(json.dumps(report, indent=1) + "\n")
    assert [f"{one.step.client}: {one.command}: {one.problem}" for one in outcomes if one.problem] == []
    assert refused == [], "a client wanted to leave this machine"
    assert {row["row"] for row in report["rows"] if row["result"] == "not shown"} == PENDING


@contextmanager
def _terminals(person: Person, folder: Path, known: dict[str, str]) -> Iterator[dict[str, Terminal]]:
    """One for each lane, each with a witness of its own, so that every question belongs to one command."""
    with ExitStack() as stack:
        made = {}
        for lane in LANES:
            place = folder / lane
            place.mkdir()
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(place / "venv")], check=True)
            witness = stack.enter_context(witnessed(urlsplit(person.origin).netloc))
            made[lane] = Terminal(person, witness, place, dict(known))
        yield made


def _world(folder: Path, person: Person) -> dict[str, str]:
    """Files that commands are given, and names that nobody else has."""
    owner = f"lab-{uuid4().hex[:8]}"
    files = folder / "given"
    digits = REPOSITORY / "examples" / "environments" / "digit_sum"
    shutil.copytree(digits, files / "digits", ignore=shutil.ignore_patterns(".prime", "dist", "__pycache__"))
    for name in ("open-pack", "shut-pack"):
        _pack(files / name, name)
    (files / "lora.toml").write_text(LORA_TOML.format(owner=owner))
    (files / "whole.toml").write_text(WHOLE_TOML.format(owner=owner))
    _results(files / "results", f"{owner}/open-pack")
    places = {
        name: str(files / name) for name in ("digits", "sums", "results", "lora.toml", "whole.toml", "open-pack", "shut-pack")
    }
    given = {name.replace(".", "_").replace("-", "_"): place for name, place in places.items()}
    return given | {"renamed": owner, "team": f"t-{uuid4().hex[:8]}", "email": person.email, "scripts": str(SCRIPTS)}


def _pack(root: Path, name: str) -> None:
    module = name.replace("-", "_")
    (root / module).mkdir(parents=True)
    (root / "pyproject.toml").write_text(PACK_TOML.format(name=name, module=module))
    (root / "README.md").write_text(f"# {name}\n")
    (root / module / "__init__.py").write_text(f'NAME = "{module}"\n')


def _results(folder: Path, environment: str) -> None:
    """As an evaluation elsewhere leaves them."""
    folder.mkdir()
    metadata = {"env": environment, "model": "tiny", "num_examples": 1, "rollouts_per_example": 1, "avg_reward": 1.0}
    (folder / "metadata.json").write_text(json.dumps(metadata))
    said = [{"role": "assistant", "content": "7"}]
    sample = {"example_id": 0, "prompt": [{"role": "user", "content": "3+4?"}], "completion": said, "reward": 1.0, "task": "x"}
    (folder / "results.jsonl").write_text(json.dumps(sample) + "\n")


def _log_in(terminal: Terminal) -> None:
    """`prime login` without a key: a person approves the code on the dashboard's page, and the key arrives."""
    before = len(terminal.witness.exchanges)
    waiting = terminal.start(LAB, LOGIN.command, PRIME_API_KEY="", PYTHONUNBUFFERED="1")
    said = []
    for line in waiting.stdout or ():
        said.append(line)
        if found := CHALLENGE.search(line):
            _approve(terminal.person, found[0])
            break
    said.append(waiting.communicate(timeout=LOGIN_DEADLINE_S)[0])
    stored = terminal.folder / "home" / ".prime" / "config.json"
    key = json.loads(stored.read_text()).get("api_key", "") if stored.exists() else ""
    problem = (
        "" if waiting.returncode == 0 and key.startswith("rsk_") else f"ended with {waiting.returncode}:\n{''.join(said)[-1500:]}"
    )
    asked = tuple(terminal.witness.exchanges[before:])
    terminal.outcomes.append(Outcome(LOGIN, LOGIN.command, problem, 0.0, asked))


def _approve(person: Person, path: str) -> None:
    if (chromium := find_chromium()) is None:
        pytest.skip("no Chromium: install the system's chromium package or set ROOTSTOCK_TEST_CHROMIUM")
    with running_chromium(chromium) as browser:
        context = browser.new_context()
        sign_in_by_cookie(context, person)
        page = context.new_page()
        page.goto(person.origin + path)
        page.get_by_role("button", name="Approve", exact=True).click()
        page.get_by_role("button", name="Approve", exact=True).wait_for(state="detached")


def _report(outcomes: list[Outcome]) -> dict[str, Any]:
    """Each row with the first command that held and asked for it."""
    told = [_row(row, outcomes) for row in rows()]
    counts = {result: sum(row["result"] == result for row in told) for result in ("ok", "deferred")}
    commands = [_command(one) for one in outcomes]
    return {"essential": len(told), **counts, "rows": told, "commands": commands}


def _command(one: Outcome) -> dict[str, Any]:
    asked = [f"{each.method} {each.address.partition('?')[0]} {each.status}" for each in one.exchanges]
    told = {"client": one.step.client, "command": one.step.command, "result": one.problem or "ok"}
    return told | {"seconds": round(one.seconds, 1), "asked": asked}


def _row(row: Row, outcomes: list[Outcome]) -> dict[str, Any]:
    held = (one for one in outcomes if not one.problem and any(row.is_shown_by(*asked[:3]) for asked in one.exchanges))
    first = next(held, None)
    result = "deferred" if row.is_deferred else "ok" if first else "not shown"
    told = {"client": first.step.client, "command": first.step.command} if first else {"client": None, "command": None}
    return {"area": row.area, "row": str(row), "result": result} | told
