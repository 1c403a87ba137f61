"""One error shape over the whole surface, whoever refuses: router, authentication, parser, schema, door, or an accident."""

import pytest

from controlplane.core import problems
from controlplane.core.errors import ApiError
from tests.contract.test_openapi import operations
from tests.factories.teams import ApiClient, client_for, make_member
from trainer.contracts.base import new_id

NATIVE = {"detail", "code", "hint", "request_id"}
OPENAI = {"message", "type", "code", "param"}
OPERATIONS = sorted((path, method) for path, method, _ in operations())


def assert_error(answer, path: str) -> None:
    assert 400 <= answer.status_code < 600, (path, answer.status_code)
    body = answer.json()
    if path.startswith(problems.INFERENCE_PREFIX):
        assert set(body) == {"error"} and set(body["error"]) == OPENAI, body
        return
    assert set(body) == NATIVE, body
    assert body["request_id"] == answer["X-Request-ID"]
    if isinstance(body["detail"], list):
        assert answer.status_code == 422 and body["detail"]
        assert all(set(one) == {"loc", "msg", "type"} for one in body["detail"])
    else:
        assert isinstance(body["detail"], str) and body["detail"]


def address(path: str) -> str:
    """The operation's address with random public ids in its places."""
    return "".join(part if index % 2 == 0 else new_id() for index, part in enumerate(path.replace("}", "{").split("{")))


@pytest.mark.django_db
@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_nobody_is_refused_in_the_shape(path: str, method: str):
    answer = getattr(client_for(), method)(address(path))
    if answer.status_code >= 400:
        assert_error(answer, path)


@pytest.mark.django_db
@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_a_malformed_body_is_refused_in_the_shape(path: str, method: str):
    if method in {"get", "delete"}:
        return
    answer = getattr(client_for(make_member()), method)(address(path), "{not json")
    assert answer.status_code != 500, answer.content
    if answer.status_code >= 400:
        assert_error(answer, path)


@pytest.mark.django_db
@pytest.mark.parametrize("path", ["/api/v1/nothing-here", "/api/inference/v1/nothing-here", "/api/v1/keys/x/y/z", "/api/"])
def test_unknown_addresses_answer_json(path: str):
    answer = client_for().get(path)
    assert answer.status_code == 404
    assert_error(answer, path)


@pytest.mark.django_db
def test_a_wrong_method_is_405_in_the_shape():
    answer = client_for(make_member()).put("/api/v1/keys", {})
    assert answer.status_code == 405
    assert_error(answer, "/api/v1/keys")


@pytest.mark.django_db
def test_an_accident_tells_nothing_of_itself(monkeypatch: pytest.MonkeyPatch):
    def explode(*_: object) -> None:
        raise RuntimeError("a secret of the inside")

    member = make_member()
    monkeypatch.setattr("controlplane.teams.access.keys_of", explode)
    answer = client_for(member).get("/api/v1/keys")
    assert answer.status_code == 500 and b"secret" not in answer.content
    assert_error(answer, "/api/v1/keys")


def test_every_error_has_its_own_code_and_status():
    family = [ApiError, *ApiError.__subclasses__()]
    assert len({error.code for error in family}) == len(family)
    assert all(400 <= error.status < 600 for error in family)


def test_a_request_id_is_repeated_and_a_strange_one_replaced(db):
    client = ApiClient()
    assert client.get("/healthz", headers={"X-Request-ID": "abc-12345678"})["X-Request-ID"] == "abc-12345678"
    assert client.get("/healthz", headers={"X-Request-ID": "<script>"})["X-Request-ID"] != "<script>"


@pytest.mark.django_db
@pytest.mark.parametrize(
    "path",
    [
        "/api",
        "/api/",
        "/api/v9/runs",
        "/api/v1/rft/runs/%00",
        "/api/v1/rft/runs?team_id=%00",
        "/api/v1/rft/runs?page=9999999999999999",
    ],
)
def test_an_address_that_leads_nowhere_is_refused_in_the_shape(path: str):
    assert_error(client_for(make_member()).get(path), path)


@pytest.mark.django_db
@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_a_body_that_is_no_object_breaks_nothing(path: str, method: str):
    if method not in {"get", "delete"}:
        answer = getattr(client_for(make_member()), method)(address(path), "[]")
        assert answer.status_code != 500, answer.content
