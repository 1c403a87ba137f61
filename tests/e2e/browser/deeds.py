"""What a person does with the `prime` command and the API, for tests that look at the result in the browser.

Knows commands and their JSON. Refuses to know any page.
"""

import json
import shutil
import time
from typing import Any

import httpx

from tests.fixtures.live_stack import Person
from tests.fixtures.places import REPOSITORY

ENVIRONMENT_PLACES = (REPOSITORY / "examples" / "environments", REPOSITORY / "tests" / "data" / "environments")
POLL_S = 0.2
DEADLINE_S = 240.0
ENDED = frozenset({"COMPLETED", "FAILED", "STOPPED", "PAUSED"})


def told(person: Person, *arguments: str) -> Any:
    """The JSON of a command that has to succeed; of one that follows, the last line's."""
    done = person.prime(*arguments, "--output", "json")
    assert done.returncode == 0, done.stderr + done.stdout
    try:
        return json.loads(done.stdout)
    except ValueError:
        return json.loads(done.stdout.strip().splitlines()[-1])


def ask(person: Person, path: str, **query: Any) -> Any:
    """GET of the public API with the person's key."""
    headers = {"Authorization": f"Bearer {person.key}"}
    answer = httpx.get(f"{person.origin}/api/v1{path}", params=query, headers=headers, timeout=60, trust_env=False)
    assert answer.status_code == 200, f"{path}: {answer.text}"
    return answer.json()


def push(person: Person, module: str, *, passes: bool = True) -> str:
    """Push a copy of an environment from the examples or the test data, wait for its badge, give its name."""
    source = next(place / module for place in ENVIRONMENT_PLACES if (place / module).is_dir())
    copy = person.home / module
    shutil.copytree(source, copy, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".prime", "dist"))
    done = person.prime("push", str(copy), "--visibility", "PUBLIC", "--output", "json")
    assert (done.returncode == 0) is passes, done.stderr + done.stdout
    return f"{person.owner}/{module.replace('_', '-')}"


def push_rows(person: Person) -> str:
    """Upload the example conversations; the dataset's name."""
    pushed = told(person, "datasets", "push", str(REPOSITORY / "examples" / "datasets" / "sums.jsonl"))
    return str(pushed["dataset"]["name"])


def start_run(person: Person, environment: str, *flags: str, **fields: Any) -> str:
    """A run on the tiny model with a few small steps; fields by their dotted names with `__` for the dot."""
    settings = {"max_steps": 4, "batch_size": 16, "rollouts_per_example": 4, "adapters__interval": 2} | fields
    overrides = [part for name, value in settings.items() for part in (f"--{name.replace('__', '.')}", str(value))]
    config = REPOSITORY / "examples" / "configs" / "digit_sum.toml"
    reply = told(person, "train", str(config), "--env.0.id", environment, *overrides, *flags, "-y")
    return str(reply.get("run", reply)["id"])


def finish_run(person: Person, run_id: str) -> dict[str, Any]:
    """Wait for the end of a run; its last record."""
    deadline = time.monotonic() + DEADLINE_S
    while (run := ask(person, f"/rft/runs/{run_id}")["run"])["status"] not in ENDED:
        assert time.monotonic() < deadline, run
        time.sleep(POLL_S)
    found: dict[str, Any] = run
    return found


def deploy_newest(person: Person, run_id: str) -> dict[str, Any]:
    """Serve the run's last adapter version; the adapter's record."""
    versions = told(person, "deployments", "list", "--run", run_id)["adapters"]
    newest = max(versions, key=lambda row: row["step"])
    deployed: dict[str, Any] = told(person, "deployments", "create", newest["id"])["adapter"]
    return deployed


def evaluate(person: Person, environment: str, model: str, tasks_count: int) -> str:
    """A hosted evaluation, followed to its end; its id."""
    reply = told(person, "eval", "run", environment, "-m", model, "-n", str(tasks_count), "--max-tokens", "8", "--follow")
    return str(reply["evaluation_id"])
