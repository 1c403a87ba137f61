"""A POST that is sent again has one effect and one answer, per team, operation and key, for a day."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import httpx
import pytest

from controlplane.core import idempotency
from controlplane.core.models import IdempotentAnswer
from controlplane.core.tenancy import acting_as_system
from controlplane.teams.models import Team
from tests.factories.runs import fund
from tests.factories.teams import client_for, make_member

pytestmark = pytest.mark.django_db
KEYED = {"Idempotency-Key": "one-intent"}


def make_team(member, name: str = "Lab", headers=KEYED):
    return client_for(member).post("/api/v1/teams", {"name": name}, headers=headers)


def test_the_same_request_is_answered_the_same_and_done_once():
    member = make_member()
    first, again = make_team(member), make_team(member)
    assert (first.status_code, again.status_code) == (201, 201) and first.json() == again.json()
    assert "Idempotent-Replayed" not in first and again["Idempotent-Replayed"] == "true"
    assert Team.objects.filter(name="Lab").count() == 1


def test_without_a_key_each_request_is_its_own():
    member = make_member()
    assert make_team(member, headers={}).json() != make_team(member, headers={}).json()


def test_another_body_under_the_same_key_is_refused_by_name():
    member = make_member()
    make_team(member)
    refused = make_team(member, name="Other")
    assert refused.status_code == 422 and refused.json()["code"] == "idempotency_mismatch"
    assert refused.json()["detail"][0]["loc"] == ["header", "Idempotency-Key"]
    assert not Team.objects.filter(name="Other").exists()


def test_the_same_json_spelled_otherwise_is_the_same_request():
    member = make_member()
    client = client_for(member)
    bodies = ['{"name": "Lab", "slug": "a-lab-of-mine"}', '{"slug":"a-lab-of-mine","name":"Lab"}']
    first, again = (client.post("/api/v1/teams", body, headers=KEYED) for body in bodies)
    assert first.json() == again.json() and again.status_code == 201


def test_teams_and_operations_do_not_share_keys():
    ada, bob = make_member(), make_member()
    assert make_team(ada).json() != make_team(bob).json()
    fund(ada)
    other = client_for(ada).post("/api/v1/keys", {"name": "Lab"}, headers=KEYED)
    assert other.status_code == 201 and "Idempotent-Replayed" not in other


def test_a_refusal_is_not_kept():
    member = make_member()
    assert client_for(member).post("/api/v1/teams", {"name": ""}, headers=KEYED).status_code == 422
    assert make_team(member).status_code == 201


def test_an_accident_takes_the_effect_back(monkeypatch):
    member = make_member()

    def explode(*_: object, **__: object) -> None:
        raise RuntimeError("after the effect")

    with monkeypatch.context() as patched:
        patched.setattr("controlplane.teams.api.render", explode)
        assert make_team(member).status_code == 500
    assert not Team.objects.filter(name="Lab").exists()
    assert make_team(member).status_code == 201


@pytest.mark.parametrize("key", ["", "two words", "x" * 256, "é"])
def test_a_key_that_is_none_is_named(key: str):
    refused = make_team(make_member(), headers={"Idempotency-Key": key})
    assert refused.status_code == 422 and refused.json()["detail"][0]["loc"] == ["header", "Idempotency-Key"]


def test_after_a_day_a_key_is_free_and_the_answer_is_swept(shift_clock):
    member = make_member()
    first = make_team(member).json()
    shift_clock(timedelta(hours=24, seconds=1))
    assert make_team(member, name="Other").json() != first
    shift_clock(timedelta(hours=24, seconds=1))
    with acting_as_system():
        assert idempotency.sweep() == 1 and not IdempotentAnswer.objects.exists()


def test_a_kept_secret_is_sealed():
    member = make_member()
    made = client_for(member).post("/api/v1/keys", {"name": "ci"}, headers=KEYED).json()
    with acting_as_system():
        assert made["key"] not in IdempotentAnswer.objects.get().sealed_body
    assert client_for(member).post("/api/v1/keys", {"name": "ci"}, headers=KEYED).json() == made


@pytest.mark.django_db(transaction=True)
def test_duplicates_at_the_same_time_have_one_effect(live_origin: str):
    member = make_member()
    headers = {"Authorization": f"Bearer {member.key}", **KEYED}

    def send(_: int) -> httpx.Response:
        return httpx.post(f"{live_origin}/api/v1/teams", json={"name": "Lab"}, headers=headers)

    with ThreadPoolExecutor(8) as senders:
        answers = list(senders.map(send, range(8)))
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert len({answer.json()["data"]["id"] for answer in answers if answer.status_code == 201}) == 1
    assert {answer.json()["code"] for answer in answers if answer.status_code == 409} <= {"idempotency_in_progress"}
    assert Team.objects.filter(name="Lab").count() == 1
