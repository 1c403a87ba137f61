"""Signing up, signing in, keys and teams, over HTTP."""

import pytest

from tests.factories.teams import PASSWORD, client_for, make_member

pytestmark = pytest.mark.django_db


def test_sign_up_answers_with_a_personal_team_and_a_key():
    client = client_for()
    answer = client.post(
        "/api/v1/auth/sign-up", {"email": "Ada@Example.com", "password": PASSWORD, "slug": "ada", "key_name": "demo"}
    )
    assert answer.status_code == 201, answer.content
    body = answer.json()
    assert body["user"]["email"] == "ada@example.com" and body["user"]["slug"] == "ada"
    assert [team["slug"] for team in body["teams"]] == ["ada"]
    me = client_for().get("/api/v1/user/whoami", headers={"Authorization": f"Bearer {body['api_key']}"})
    assert me.json()["data"]["id"] == body["user"]["id"]


def test_a_wrong_key_is_401_in_the_one_shape():
    answer = client_for().get("/api/v1/user/whoami", headers={"Authorization": "Bearer rsk_wrong"})
    assert answer.status_code == 401
    assert set(answer.json()) == {"detail", "code", "hint", "request_id"}


def test_make_member():
    member = make_member("ada")
    assert client_for(member).get("/api/v1/keys/").json()["items"][0]["name"] == "test"
