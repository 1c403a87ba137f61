"""API keys: told once, limited to scopes, ended by revocation or time."""

from datetime import timedelta

import pytest

from controlplane.core import clock
from controlplane.teams import services
from controlplane.teams.access import actor_for
from controlplane.teams.keys import generate_key
from controlplane.teams.permissions import SCOPES
from tests.contract.test_openapi import document
from tests.factories.teams import Member, client_for, make_member

pytestmark = pytest.mark.django_db


def keyed(member: Member, **limits) -> Member:
    _, text = services.create_key(actor_for(member.actor.user), name="limited", **limits)
    return Member(member.actor, text)


def test_a_key_is_told_once():
    client = client_for(make_member())
    made = client.post("/api/v1/keys", {"name": "ci"}).json()
    assert made["key"].startswith(made["prefix"] + "_")
    listed = client.get("/api/v1/keys").json()["items"]
    assert made["id"] in {key["id"] for key in listed} and all("key" not in key for key in listed)


def test_a_revoked_key_is_nothing():
    member = make_member()
    client = client_for(member)
    made = client.post("/api/v1/keys", {"name": "ci"}).json()
    assert client.delete(f"/api/v1/keys/{made['id']}").status_code == 204
    assert client.delete(f"/api/v1/keys/{made['id']}").status_code == 404
    assert client_for(Member(member.actor, made["key"])).get("/api/v1/keys").status_code == 401


def test_an_expired_key_is_nothing(shift_clock):
    member = keyed(make_member(), expires_at=clock.now() + timedelta(hours=1))
    assert client_for(member).get("/api/v1/keys").status_code == 200
    shift_clock(timedelta(hours=1, seconds=1))
    assert client_for(member).get("/api/v1/keys").status_code == 401


@pytest.mark.parametrize("spoil", [lambda key: key[:-1] + "x", lambda key: key[:20] + "A" * 40, lambda key: "x" * 5000])
def test_a_wrong_key_is_401(spoil):
    member = make_member()
    answer = client_for(Member(member.actor, spoil(member.key))).get("/api/v1/user/whoami")
    assert answer.status_code == 401 and answer["WWW-Authenticate"] == "Bearer"


def code_of(member: Member, key: str) -> str:
    return client_for(Member(member.actor, key)).get("/api/v1/keys").json()["code"]


def test_a_typo_is_told_without_the_database(django_assert_num_queries):
    member = make_member()
    with django_assert_num_queries(0):
        assert code_of(member, member.key[:-1] + ("0" if member.key[-1] != "0" else "1")) == "malformed_key"


def test_only_the_holder_is_told_that_a_key_has_ended(shift_clock):
    member, stranger = make_member(), generate_key()
    made = client_for(member).post("/api/v1/keys", {"name": "ci"}).json()
    short = keyed(member, expires_at=clock.now() + timedelta(hours=1))
    client_for(member).delete(f"/api/v1/keys/{made['id']}")
    shift_clock(timedelta(hours=2))
    assert code_of(member, made["key"]) == "revoked_key" and code_of(member, short.key) == "expired_key"
    assert code_of(member, stranger.text) == "invalid_key"


@pytest.mark.parametrize("days", [-1, 0, 4000])
def test_a_key_ends_in_the_future_or_never(days: int):
    expires_at = (clock.now() + timedelta(days=days)).isoformat()
    answer = client_for(make_member()).post("/api/v1/keys", {"name": "x", "expires_at": expires_at})
    assert answer.status_code == 422 and answer.json()["detail"][0]["loc"] == ["body", "expires_at"]


def test_a_key_that_expires_makes_none_that_lives_longer():
    soon, later = (clock.now() + timedelta(hours=hours) for hours in (1, 2))
    member = keyed(make_member(), expires_at=soon)
    refused = [client_for(member).post("/api/v1/keys", {"name": "x", "expires_at": one}) for one in (None, later.isoformat())]
    assert [answer.status_code for answer in refused] == [403, 403]
    assert client_for(member).post("/api/v1/keys", {"name": "x", "expires_at": soon.isoformat()}).status_code == 201


def test_the_document_lists_the_scopes():
    schema = document()["components"]["schemas"]["KeyIn"]["properties"]["scopes"]
    assert set(schema["anyOf"][0]["items"]["enum"]) == SCOPES


def test_a_key_that_is_not_there_is_named():
    assert "nothing-here" in client_for(make_member()).delete("/api/v1/keys/nothing-here").json()["detail"]


def test_a_key_does_what_its_scopes_say():
    limited = client_for(keyed(make_member(), scopes=["keys:read"]))
    assert limited.get("/api/v1/keys").status_code == 200
    refused = limited.post("/api/v1/keys", {"name": "x"})
    assert refused.status_code == 403 and refused.json()["code"] == "scope_missing"
    assert limited.get("/api/v1/user/teams").status_code == 403


def test_whoami_tells_the_scopes():
    data = client_for(keyed(make_member(), scopes=["teams:read", "runs:write"])).get("/api/v1/user/whoami").json()["data"]
    assert data["scope"] == {"runs": {"read": False, "write": True}, "teams": {"read": True, "write": False}}


def test_a_limited_key_makes_no_wider_one():
    limited = client_for(keyed(make_member(), scopes=["keys:read", "keys:write"]))
    assert limited.post("/api/v1/keys", {"name": "x"}).status_code == 403
    assert limited.post("/api/v1/keys", {"name": "x", "scopes": ["runs:write"]}).status_code == 403
    assert limited.post("/api/v1/keys", {"name": "x", "scopes": ["keys:read"]}).status_code == 201


def test_an_unknown_scope_is_named():
    answer = client_for(make_member()).post("/api/v1/keys", {"name": "x", "scopes": ["fly"]})
    assert answer.status_code == 422 and "fly" in answer.json()["detail"][0]["msg"]


def test_a_key_tells_when_it_was_used_and_a_busy_one_writes_rarely(shift_clock):
    member = make_member()
    first, second = (client_for(member).get("/api/v1/keys").json()["items"][0]["last_used_at"] for _ in range(2))
    assert first == second is not None
    shift_clock(timedelta(minutes=2))
    assert client_for(member).get("/api/v1/keys").json()["items"][0]["last_used_at"] > first
