"""A team that has been through everything once: an environment, a dataset, runs good and failed, an evaluation, a served adapter.

Made once for all browser tests, which look at it and change nothing that another one needs.
"""

from dataclasses import dataclass

from tests.e2e.browser import deeds, hostile
from tests.fixtures.live_stack import Person

TASKS_COUNT = 8


@dataclass(frozen=True)
class World:
    person: Person
    environment: str
    run_id: str
    failed_run_id: str
    adapter_id: str
    evaluation_id: str


def make_world(person: Person) -> World:
    environment = deeds.push(person, "digit_sum")
    deeds.push_rows(person)
    broken = deeds.push(person, "broken_import", passes=False)
    run_id = deeds.start_run(person, environment, name="first steps", eval__interval=2, eval__num_examples=TASKS_COUNT)
    failed_run_id = deeds.start_run(person, broken, "--force", name="cannot begin")
    evaluation_id = deeds.evaluate(person, environment, "tiny", TASKS_COUNT)
    assert deeds.finish_run(person, failed_run_id)["status"] == "FAILED"
    assert deeds.finish_run(person, run_id)["status"] == "COMPLETED"
    adapter = deeds.deploy_newest(person, run_id)
    return World(person, environment, run_id, failed_run_id, adapter["id"], evaluation_id)


@dataclass(frozen=True)
class HostileWorld:
    person: Person
    environment: str
    run_id: str
    evaluation_id: str


def make_hostile_world(person: Person) -> HostileWorld:
    """The same for a tenant who writes markup wherever a text is theirs."""
    source = hostile.write_environment(person.home)
    assert person.prime("push", str(source), "--visibility", "PUBLIC").returncode == 0
    environment = f"{person.owner}/{hostile.NAME}"
    run_id = deeds.start_run(person, environment, name=hostile.CORPUS[1], max_steps=2, batch_size=8)
    reply = deeds.told(person, "eval", "run", environment, "-m", "tiny", "-n", "4", "--name", hostile.CORPUS[2], "--follow")
    deeds.told(person, "keys", "create", hostile.CORPUS[1])
    assert deeds.finish_run(person, run_id)["status"] == "COMPLETED"
    return HostileWorld(person, environment, run_id, str(reply["evaluation_id"]))
