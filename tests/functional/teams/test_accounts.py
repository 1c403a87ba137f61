"""Signing up and in, the dashboard's session, and what a wrong credential gets."""

from datetime import timedelta

import pytest
from django.test import Client

from controlplane.billing.queries import wallet_balance
from controlplane.core.tenancy import acting_as_system
from controlplane.teams.models import ApiKey, Team, User
from tests.factories.teams import PASSWORD, ApiClient, client_for, make_member

pytestmark = pytest.mark.django_db
SIGN_UP = "/api/v1/auth/sign-up"
SIGN_IN = "/api/v1/auth/sign-in"


def browser() -> Client:
    return Client(enforce_csrf_checks=True)


def send(client: Client, path: str, body: dict, **headers: str):
    return client.post(path, body, content_type="application/json", headers=headers)


def test_sign_up_makes_a_user_a_personal_team_a_wallet_and_a_key():
    body = {"email": "Ada@Example.com", "password": PASSWORD, "slug": "ada", "key_name": "demo"}
    answer = client_for().post(SIGN_UP, body)
    assert answer.status_code == 201, answer.content
    made = answer.json()
    assert made["user"]["email"] == "ada@example.com" and made["user"]["slug"] == "ada"
    assert [(team["slug"], team["role"], team["is_personal"]) for team in made["teams"]] == [("ada", "ADMIN", True)]
    me = ApiClient().get("/api/v1/user/whoami", headers={"Authorization": f"Bearer {made['api_key']}"})
    assert me.json()["data"] | {"scope": None} == me.json()["data"] and me.json()["data"]["id"] == made["user"]["id"]
    with acting_as_system():
        assert wallet_balance(Team.objects.get(slug="ada")) == 0


def test_passwords_and_keys_are_stored_hashed():
    member = make_member()
    with acting_as_system():
        stored = f"{User.objects.values().first()} {ApiKey.objects.values().first()}"
    assert PASSWORD not in stored and member.key not in stored and member.key[-40:] not in stored


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"email": "no-address"}, "email"),
        ({"password": "short"}, "password"),
        ({"slug": "No Such Slug"}, "slug"),
        ({"slug": "api"}, "slug"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_a_refused_field_is_named_and_nothing_is_made(change: dict, field: str):
    answer = client_for().post(SIGN_UP, {"email": "ada@example.com", "password": PASSWORD, "slug": "ada"} | change)
    assert answer.status_code == 422
    assert [one["loc"] for one in answer.json()["detail"]] == [["body", field]]
    assert User.objects.count() == 0
    assert str(change.get("password")) not in answer.content.decode() or "password" not in change


@pytest.mark.parametrize(("taken", "code"), [({"email": "ADA@example.com"}, "email_taken"), ({"slug": "ada"}, "slug_taken")])
def test_what_is_taken_is_a_conflict(taken: dict, code: str):
    make_member("ada")
    answer = client_for().post(SIGN_UP, {"email": "new@example.com", "password": PASSWORD, "slug": "new"} | taken)
    assert answer.status_code == 409 and answer.json()["code"] == code and "already taken" in answer.json()["detail"]
    assert User.objects.count() == 1


def test_wrong_password_and_unknown_user_are_one_answer():
    make_member("ada")
    attempts = [{"email": email, "password": "wrong-password"} for email in ("ada@example.com", "no@example.com")]
    wrong, unknown = (client_for().post(SIGN_IN, attempt) for attempt in attempts)
    assert wrong.status_code == unknown.status_code == 401
    assert {**wrong.json(), "request_id": ""} == {**unknown.json(), "request_id": ""}


def test_a_session_reads_at_once_and_writes_with_its_csrf_token():
    make_member("ada")
    page = browser()
    session = send(page, SIGN_IN, {"email": "ada@example.com", "password": PASSWORD}).json()
    assert page.get("/api/v1/user/whoami").status_code == 200
    refused = send(page, "/api/v1/keys", {"name": "x"})
    assert refused.status_code == 403 and refused.json()["code"] == "csrf_failed"
    assert send(page, "/api/v1/keys", {"name": "x"}, **{"X-CSRFToken": session["csrf_token"]}).status_code == 201


def test_signing_out_ends_the_session():
    make_member("ada")
    page = browser()
    token = send(page, SIGN_IN, {"email": "ada@example.com", "password": PASSWORD}).json()["csrf_token"]
    assert send(page, "/api/v1/auth/sign-out", {}).status_code == 403
    assert send(page, "/api/v1/auth/sign-out", {}, **{"X-CSRFToken": token}).status_code == 204
    assert page.get("/api/v1/user/whoami").status_code == 401
    assert page.get("/api/v1/auth/session").json()["user"] is None


def test_a_changed_password_ends_every_session():
    member = make_member("ada")
    page = browser()
    send(page, SIGN_IN, {"email": "ada@example.com", "password": PASSWORD})
    member.actor.user.set_password("another-password")
    member.actor.user.save()
    assert page.get("/api/v1/user/whoami").status_code == 401


def test_guessing_is_limited_per_account_and_the_limit_ends(shift_clock):
    make_member("ada")
    tries = [client_for().post(SIGN_IN, {"email": "ada@example.com", "password": "guess"}).status_code for _ in range(11)]
    assert tries == [401] * 10 + [429]
    refused = client_for().post(SIGN_IN, {"email": "ada@example.com", "password": PASSWORD})
    assert refused.status_code == 429 and 0 < int(refused["Retry-After"]) <= 600
    shift_clock(timedelta(seconds=601))
    assert client_for().post(SIGN_IN, {"email": "ada@example.com", "password": PASSWORD}).status_code == 200
