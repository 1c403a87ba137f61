"""Every operation says all that a caller must know of it, and its declared scope is the one that is enforced."""

from typing import Any

import pytest
from pydantic import BaseModel

from controlplane.billing.schemas import TopUpRequest
from controlplane.core.declarations import PUBLIC, SCOPE_FIELD
from controlplane.core.openapi import FAILURES
from controlplane.inference.schemas import ChatRequest
from controlplane.teams import services
from controlplane.teams.access import actor_for
from controlplane.teams.permissions import SCOPES
from controlplane.teams.schemas import KeyIn, SignIn, TeamIn
from tests.contract.test_error_shape import address
from tests.contract.test_openapi import document, operations
from tests.factories.teams import Member, client_for, make_member

OPERATIONS = sorted(((path, method, operation) for path, method, operation in operations()), key=lambda one: one[:2])
# Of a page, whatever its rows are: a turn of a conversation has the most.
ROWS_MAX = 4096
IDS = [operation["operationId"] for _, _, operation in OPERATIONS]
# Their database threads do not see a test's uncommitted key; tests/functional/test_inference_gateway.py has the case.
ASYNCHRONOUS = frozenset({"chat_completions"})
LIMITED = sorted(
    (path, method, operation[SCOPE_FIELD])
    for path, method, operation in OPERATIONS
    if operation[SCOPE_FIELD] != PUBLIC and operation["operationId"] not in ASYNCHRONOUS
)


def limited_to(*scopes: str) -> Member:
    member = make_member()
    _, text = services.create_key(actor_for(member.actor.user), name="limited", scopes=list(scopes))
    return Member(member.actor, text)


@pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS, ids=IDS)
def test_an_operation_is_described_whole(path: str, method: str, operation: dict[str, Any]):
    areas = {tag["name"] for tag in document()["tags"]}
    assert operation["summary"] and operation["description"]
    assert len(operation["tags"]) == 1 and set(operation["tags"]) <= areas
    assert operation[SCOPE_FIELD] in SCOPES | {PUBLIC}
    assert operation["security"]
    assert all(answer.get("description") or "$ref" in answer for answer in operation["responses"].values())


@pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS, ids=IDS)
def test_its_answers_and_bodies_have_a_shape(path: str, method: str, operation: dict[str, Any]):
    for status, answer in operation["responses"].items():
        if status.startswith("2") and status != "204":
            schemas = [content["schema"] for content in answer["content"].values()]
            assert schemas and all(schemas), (status, schemas)
    if "requestBody" in operation:
        assert operation["requestBody"]["content"]["application/json"]["schema"]
    assert "default" not in operation["responses"], "a default documents nothing"
    assert {400, 401, 403, 404, 422, 429, 503} <= {int(status) for status in operation["responses"]} & set(FAILURES)


@pytest.mark.parametrize(("path", "method", "operation"), OPERATIONS, ids=IDS)
def test_pages_have_bounds_and_defaults(path: str, method: str, operation: dict[str, Any]):
    parameters = {one["name"]: one["schema"] for one in operation.get("parameters", []) if "name" in one}
    if {"cursor", "offset", "page", "skip"} & set(parameters) and "limit" in parameters:
        limit = parameters["limit"]
        assert limit["minimum"] == 1 and limit["maximum"] <= ROWS_MAX and limit["default"] <= limit["maximum"]


@pytest.mark.django_db
@pytest.mark.parametrize(("path", "method", "scope"), LIMITED, ids=lambda value: str(value))
def test_a_key_without_the_declared_scope_is_refused_and_one_with_it_is_not(path: str, method: str, scope: str):
    without = client_for(limited_to(*(SCOPES - {scope})))
    refused = getattr(without, method)(address(path))
    assert refused.status_code == 403 and scope in refused.content.decode(), refused.content
    allowed = getattr(client_for(limited_to(scope)), method)(address(path))
    assert b"scope" not in allowed.content or allowed.json().get("code") != "scope_missing", allowed.content


@pytest.mark.parametrize("model", [KeyIn, SignIn, TeamIn, TopUpRequest, ChatRequest], ids=lambda model: model.__name__)
def test_the_examples_of_the_document_are_bodies_that_are_taken(model: type[BaseModel]):
    examples = document()["components"]["schemas"][model.__name__]["examples"]
    assert examples and all(model.model_validate(example) for example in examples)


def test_every_scope_is_used_and_every_refusal_is_a_failure_of_the_document():
    used = {operation[SCOPE_FIELD] for _, _, operation in OPERATIONS} - {PUBLIC}
    assert used == SCOPES
    assert len(document()["components"]["responses"]) == 2 * len(FAILURES)
