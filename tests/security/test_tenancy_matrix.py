"""Every operation × every id in its address × somebody else: the answer is the 404 that an absent object gets.

Generated from the OpenAPI document, so that a new endpoint is covered, or fails, the day it is added.
"""

import re
from typing import Any

import pytest

from controlplane.core.errors import NotFound
from controlplane.core.tenancy import acting_as_system
from controlplane.runs import api as runs_api
from controlplane.runs.models import Run
from controlplane.teams import access, services
from controlplane.teams.actors import Actor
from tests.contract.test_openapi import operations
from tests.factories.objects import BODIES, World
from tests.factories.teams import Member, client_for, make_member, make_shared_team
from tests.fixtures.gates import Gate
from trainer.contracts.base import new_id

# Parameters that name something which belongs to no team, each with its reason.
PUBLIC_PARAMETERS = {"model_id": "base models are everybody's; adapters behind ':' are tested by the gateway"}
ABSENT = {"owner": "nobody-at-all", "name": "no-such-name", "version": "9.9.9"}
# Operations that need no credential, and so never look at a team.
PUBLIC_STATUSES: dict[str, tuple[int, ...]] = {
    "auth_sign_up": (422,),
    "auth_sign_in": (422,),
    "auth_sign_out": (204,),
    "auth_session": (200,),
    "auth_challenge_generate": (422,),
    "auth_challenge_status": (422,),
    # Its database threads do not see this test's uncommitted key; tests/functional/test_inference_gateway.py has the case.
    "chat_completions": (401,),
}
_PARAMETER = re.compile(r"\{(\w+)\}")
pytestmark = pytest.mark.django_db


def owned(path: str) -> list[str]:
    return [name for name in _PARAMETER.findall(path) if name not in PUBLIC_PARAMETERS]


OPERATIONS = sorted((path, method, operation["operationId"]) for path, method, operation in operations())
ADDRESSED = [one for one in OPERATIONS if owned(one[0])]
POSITIONS = [(*one, position) for one in ADDRESSED for position in owned(one[0])]


def call(member: Member | None, path: str, method: str, values: dict[str, str], body: dict[str, Any] | None) -> Any:
    address = _PARAMETER.sub(lambda match: values[match[1]], path)
    client = client_for(member)
    return getattr(client, method)(address) if body is None else getattr(client, method)(address, body)


def normal(answer: Any, values: dict[str, str]) -> str:
    """The body without what may differ: the request's id, and the address that was asked for."""
    text = answer.content.decode()
    for value in (answer["X-Request-ID"], *values.values()):
        text = text.replace(value, "*")
    return text


def actors() -> dict[str, tuple[Member | None, set[int]]]:
    """Who asks, and what everybody of that kind gets for what is not theirs.

    Public addresses answer nobody as they do a stranger."""
    former, admin = make_member(), make_member()
    left = make_shared_team(admin, former)[1]
    services.remove_member(access.actor_for(admin.actor.user, team_id=left.team_id), user_id=former.actor.user.pk)
    return {"a stranger": (make_member(), {404}), "nobody": (None, {401, 404}), "one who has left their team": (left, {404})}


def differences(path: str, method: str, operation_id: str, position: str) -> tuple[int, list[str]]:
    """How many actors asked for somebody's object and for an absent one, and who was told the two apart."""
    world, found, asking = World(), [], actors()
    theirs = {name: world[name] for name in _PARAMETER.findall(path)}
    nothing = theirs | {position: ABSENT.get(position) or new_id()}
    body = BODIES[operation_id](world) if operation_id in BODIES else None
    for name, (actor, statuses) in asking.items():
        foreign, absent = (call(actor, path, method, values, body) for values in (theirs, nothing))
        if foreign.status_code != absent.status_code or foreign.status_code not in statuses:
            found.append(f"{name}: {foreign.status_code} and {absent.status_code}, {foreign.content[:200]}")
        elif normal(foreign, theirs) != normal(absent, nothing):
            found.append(f"{name}: {foreign.content[:200]} is not {absent.content[:200]}")
    return len(asking), found


@pytest.mark.gate("R2")
@pytest.mark.parametrize(("path", "method", "operation_id", "position"), POSITIONS)
def test_foreign_and_absent_are_the_same(path: str, method: str, operation_id: str, position: str, gate: Gate):
    """R2: operation × identifier position × actor."""
    asked, found = differences(path, method, operation_id, position)
    gate.record(trials=asked, violations=len(found))
    assert found == []


@pytest.mark.parametrize(("path", "method", "operation_id"), ADDRESSED)
def test_the_owner_finds_what_strangers_do_not(path: str, method: str, operation_id: str):
    """Without this the test above would pass for an address that never answers."""
    world = World()
    values = {name: world[name] for name in _PARAMETER.findall(path)}
    body = BODIES[operation_id](world) if operation_id in BODIES else None
    answer = call(world.member, path, method, values, body)
    assert answer.status_code not in {404, 405} and answer.status_code < 500, answer.content


@pytest.mark.gate("R2")
@pytest.mark.parametrize(("path", "method", "operation_id"), OPERATIONS)
def test_no_operation_acts_for_a_team_that_is_not_ones_own(path: str, method: str, operation_id: str):
    stranger, other = make_member(), make_member()
    addressed = _PARAMETER.sub("x", path)
    answers = [
        getattr(client_for(stranger), method)(addressed, headers={"X-Prime-Team-ID": team_id})
        for team_id in (other.team_id, new_id())
    ]
    if answers[0].status_code not in PUBLIC_STATUSES.get(operation_id, ()):
        assert [answer.status_code for answer in answers] == [404, 404], answers[0].content


def test_a_parameter_without_a_factory_fails_the_matrix():
    with pytest.raises(AssertionError, match="no factory for the path parameter"):
        World()["new_thing_id"]


def test_r2_turns_red_when_a_door_forgets_its_team(monkeypatch: pytest.MonkeyPatch):
    """The door finds by id alone, beyond row-level security too: this is what R2 is for."""

    def open_door(actor: Actor, run_id: str) -> Run:
        with acting_as_system():
            run = Run.objects.filter(pk=run_id).first()
        if run is None:
            raise NotFound("There is no such run.")
        return run

    monkeypatch.setattr(runs_api, "access_run", open_door)
    _, found = differences("/api/v1/rft/runs/{run_id}", "get", "runs_get", "run_id")
    assert any("a stranger" in line for line in found)
