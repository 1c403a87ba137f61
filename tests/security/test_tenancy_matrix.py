"""Every operation × every id in its address × somebody else: the answer is the 404 that an absent object gets.

Generated from the OpenAPI document, so that a new endpoint is covered, or fails, the day it is added.
"""

import re
from typing import Any

import pytest

from tests.contract.test_openapi import operations
from tests.factories.objects import BODIES, World
from tests.factories.teams import Member, client_for, make_member
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
pytestmark = [pytest.mark.django_db, pytest.mark.gate("R2")]


def owned(path: str) -> list[str]:
    return [name for name in _PARAMETER.findall(path) if name not in PUBLIC_PARAMETERS]


OPERATIONS = sorted((path, method, operation["operationId"]) for path, method, operation in operations())
ADDRESSED = [one for one in OPERATIONS if owned(one[0])]
POSITIONS = [(*one, position) for one in ADDRESSED for position in owned(one[0])]


def call(member: Member, path: str, method: str, values: dict[str, str], body: dict[str, Any] | None) -> Any:
    address = _PARAMETER.sub(lambda match: values[match[1]], path)
    client = client_for(member)
    return getattr(client, method)(address) if body is None else getattr(client, method)(address, body)


def normal(answer: Any, values: dict[str, str]) -> str:
    """The body without what may differ: the request's id, and the address that was asked for."""
    text = answer.content.decode()
    for value in (answer["X-Request-ID"], *values.values()):
        text = text.replace(value, "*")
    return text


@pytest.mark.parametrize(("path", "method", "operation_id", "position"), POSITIONS)
def test_foreign_and_absent_are_the_same_404(path: str, method: str, operation_id: str, position: str):
    world, stranger = World(), make_member()
    theirs = {name: world[name] for name in _PARAMETER.findall(path)}
    nothing = theirs | {position: ABSENT.get(position) or new_id()}
    body = BODIES[operation_id](world) if operation_id in BODIES else None
    foreign, absent = (call(stranger, path, method, values, body) for values in (theirs, nothing))
    assert (foreign.status_code, absent.status_code) == (404, 404), (foreign.content, absent.content)
    assert normal(foreign, theirs) == normal(absent, nothing)


@pytest.mark.parametrize(("path", "method", "operation_id"), ADDRESSED)
def test_the_owner_finds_what_strangers_do_not(path: str, method: str, operation_id: str):
    """Without this the test above would pass for an address that never answers."""
    world = World()
    values = {name: world[name] for name in _PARAMETER.findall(path)}
    body = BODIES[operation_id](world) if operation_id in BODIES else None
    answer = call(world.member, path, method, values, body)
    assert answer.status_code not in {404, 405} and answer.status_code < 500, answer.content


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
