"""Secrets and variables over HTTP: whose they are, which one wins, what a sandbox gets, and that no answer has a value."""

import base64

import pytest

from controlplane.audit.models import AuditEvent
from controlplane.core.tenancy import acting_as_system, acting_for
from controlplane.hub.models import Visibility
from controlplane.hub.services import delete_environment
from controlplane.secrets import services
from controlplane.secrets.access import place_of
from controlplane.secrets.models import Link, Secret, Setting
from controlplane.secrets.queries import PLACEHOLDER, values_of
from controlplane.secrets.schemas import ValueIn
from controlplane.secrets.services import create_setting, hand_out
from tests.factories.releases import make_release
from tests.factories.runs import fund, holder_client, lease_run, make_pool, make_run
from tests.factories.teams import client_for, make_member, make_shared_team
from tests.fixtures.gates import Gate
from trainer.contracts.internal import SandboxValues
from trainer.contracts.redaction import spellings

pytestmark = pytest.mark.django_db
SECRETS = "/api/v1/secrets/"
VALUE = "sk-live-0123456789"


@pytest.fixture
def ada():
    return make_member("ada")


@pytest.fixture
def client(ada):
    return client_for(ada)


@pytest.fixture
def environment(ada):
    return make_release(ada, visibility=Visibility.PUBLIC).environment


@pytest.fixture
def hub(environment):
    return f"/api/v1/environmentshub/{environment.id}"


def made(answer) -> dict:
    assert answer.status_code == 200, answer.content
    return answer.json()["data"]


def given(member, environment) -> SandboxValues:
    with acting_as_system():
        return values_of(member.team_id, environment.id)


@pytest.mark.gate("R15")
def test_a_secret_is_kept_listed_and_changed_and_its_value_never_comes_back(client, ada):
    body = {"name": "API_KEY", "value": VALUE, "description": "for the judge", "teamId": ada.team_id}
    secret = made(client.post(SECRETS, body))
    changed = client.patch(f"/api/v1/secrets/{secret['id']}", {"value": f"{VALUE}-2", "name": "JUDGE_KEY"})
    answers = [client.get(SECRETS), client.get("/api/v1/secrets"), client.get(f"/api/v1/secrets/{secret['id']}"), changed]
    assert made(changed) | {"name": "API_KEY", "updatedAt": ""} == secret | {"updatedAt": ""}
    assert answers[0].json()["total_count"] == 1 and [row["name"] for row in answers[0].json()["data"]] == ["JUDGE_KEY"]
    assert set(secret) >= {"id", "name", "description", "isFile", "userId", "teamId", "createdAt", "updatedAt"}
    assert secret["teamId"] == ada.team_id and secret["description"] == "for the judge" and "value" not in secret
    assert not [answer for answer in answers if VALUE in answer.content.decode()]


@pytest.mark.gate("R15")
def test_values_are_sealed_in_the_database_and_absent_from_the_audit_log(client, hub):
    made(client.post(SECRETS, {"name": "API_KEY", "value": VALUE}))
    made(client.post(f"{hub}/secrets", {"name": "OWN", "value": VALUE}))
    made(client.post(f"{hub}/variables", {"name": "LEVEL", "value": "hard-to-find"}))
    with acting_as_system():
        rows = [*Secret.objects.values(), *Setting.objects.values(), *AuditEvent.objects.values()]
        actions = set(AuditEvent.objects.values_list("action", flat=True))
    assert VALUE not in str(rows) and "hard-to-find" not in str(rows)
    assert {"secret.created", "variable.created"} <= actions


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "lower", "value": "x"}, "name"),
        ({"name": "A" * 256, "value": "x"}, "name"),
        ({"name": "PATH", "value": "x"}, "name"),
        ({"name": "A", "value": ""}, "value"),
        ({"name": "A", "value": "x" * 16_385}, "value"),
        ({"name": "A", "value": "x", "description": "d" * 501}, "description"),
        ({"name": "A", "value": "no base64!", "isFile": True}, "value"),
        ({"name": "A", "value": "x", "colour": "red"}, "colour"),
    ],
)
def test_a_refusal_names_the_field_and_never_the_value(client, body, field):
    answer = client.post(SECRETS, body)
    assert answer.status_code == 422 and answer.json()["detail"][0]["loc"][-1] == field
    assert len(body["value"]) < 3 or body["value"] not in answer.content.decode()


def test_names_are_taken_once_in_a_team_and_once_in_an_environment(client, hub):
    made(client.post(SECRETS, {"name": "SAME", "value": VALUE}))
    made(client.post(f"{hub}/secrets", {"name": "SAME", "value": VALUE}))
    again = [client.post(path, {"name": "SAME", "value": VALUE}) for path in (SECRETS, f"{hub}/secrets", f"{hub}/variables")]
    assert [answer.status_code for answer in again] == [409] * 3 and {answer.json()["code"] for answer in again} == {"name_taken"}


def test_an_environment_takes_so_many_and_no_more(client, environment, hub, monkeypatch):
    monkeypatch.setattr(services, "PER_ENVIRONMENT_MAX", 1)
    made(client.post(f"{hub}/variables", {"name": "FIRST", "value": "x"}))
    secret = made(client.post(SECRETS, {"name": "ONE_MORE", "value": VALUE}))
    answers = [client.post(f"{hub}/secrets/link/{secret['id']}"), client.post(f"{hub}/secrets", {"name": "A", "value": VALUE})]
    assert [answer.json()["code"] for answer in answers] == ["too_many_secrets"] * 2


def test_an_environments_secrets_are_its_own_and_the_linked_ones(client, ada, environment, hub):
    secret = made(client.post(SECRETS, {"name": "SHARED", "value": "the-teams-value"}))
    link = made(client.post(f"{hub}/secrets/link/{secret['id']}", {}))
    assert (link["secretId"], link["secretName"], link["environmentId"]) == (secret["id"], "SHARED", environment.id)
    assert made(client.post(f"{hub}/secrets/link/{secret['id']}/")) == link
    own = made(client.post(f"{hub}/secrets", {"name": "OWN", "value": "its-own-value"}))
    listed = made(client.get(f"{hub}/secrets/"))
    assert [(row["name"], row["source"], row["id"]) for row in listed] == [
        ("OWN", "environment", own["id"]),
        ("SHARED", "global", secret["id"]),
    ]
    assert given(ada, environment).secrets == {"OWN": "its-own-value", "SHARED": "the-teams-value"}
    refused = client.delete(f"{hub}/secrets/{secret['id']}")
    assert refused.status_code == 409 and f"unlink {secret['id']}" in refused.json()["hint"]
    assert client.delete(f"{hub}/secrets/link/{secret['id']}").status_code == 204
    assert given(ada, environment).secrets == {"OWN": "its-own-value"}
    assert client.delete(f"{hub}/secrets/link/{secret['id']}").status_code == 404


def test_the_environments_own_wins_over_a_linked_one_of_that_name(client, ada, environment, hub):
    secret = made(client.post(SECRETS, {"name": "LEVEL", "value": "of-the-team"}))
    made(client.post(f"{hub}/secrets/link/{secret['id']}"))
    variable = made(client.post(f"{hub}/variables", {"name": "LEVEL", "value": "of-the-environment"}))
    assert given(ada, environment) == SandboxValues(variables={"LEVEL": "of-the-environment"})
    assert client.delete(f"{hub}/variables/{variable['id']}").status_code == 204
    assert given(ada, environment) == SandboxValues(secrets={"LEVEL": "of-the-team"})


def test_variables_are_shown_changed_and_deleted(client, hub):
    variable = made(client.post(f"{hub}/variables", {"name": "LEVEL", "value": "hard", "description": "how hard"}))
    changed = made(client.patch(f"{hub}/variables/{variable['id']}", {"value": "easy"}))
    assert (
        made(client.get(f"{hub}/variables")) == [changed] and changed["value"] == "easy" and changed["description"] == "how hard"
    )
    assert client.patch(f"{hub}/secrets/{variable['id']}", {"value": "x"}).status_code == 404
    assert client.patch(f"{hub}/variables/{variable['id']}", {}).status_code == 422


def test_a_public_environments_secrets_are_for_its_owners_work_alone(client, ada, environment, hub):
    """Whoever runs it gets what their own team has set, and sees nothing of the owner's."""
    made(client.post(f"{hub}/secrets", {"name": "API_KEY", "value": "the-owners-value"}))
    made(client.post(f"{hub}/variables", {"name": "LEVEL", "value": "the-owners-level"}))
    bob = make_member("bob")
    theirs = client_for(bob)
    assert made(theirs.get(f"{hub}/secrets")) == [] == made(theirs.get(f"{hub}/variables"))
    assert given(bob, environment) == SandboxValues()
    made(theirs.post(f"{hub}/secrets", {"name": "API_KEY", "value": "bobs-own-value"}))
    assert given(bob, environment).secrets == {"API_KEY": "bobs-own-value"}
    assert given(ada, environment).secrets == {"API_KEY": "the-owners-value"}
    assert [row["teamId"] for row in made(theirs.get(f"{hub}/secrets"))] == [bob.team_id]


def test_a_secret_of_another_team_cannot_be_linked(client, hub):
    foreign = made(client_for(make_member()).post(SECRETS, {"name": "API_KEY", "value": VALUE}))
    absent = client.post(f"{hub}/secrets/link/nothing-here")
    refused = client.post(f"{hub}/secrets/link/{foreign['id']}")
    assert (refused.status_code, absent.status_code) == (404, 404)


def test_a_members_environment_is_its_teams_whichever_team_is_acted_for(ada):
    """The public client names no team when it speaks of an environment."""
    team = make_shared_team(ada)[0]
    environment = make_release(team).environment
    made(client_for(ada).post(f"/api/v1/environmentshub/{environment.id}/secrets", {"name": "API_KEY", "value": VALUE}))
    assert given(team, environment).secrets == {"API_KEY": VALUE} and given(ada, environment) == SandboxValues()


def test_with_an_environment_or_a_secret_what_hangs_on_it_goes(client, environment, hub):
    linked, deleted = (made(client.post(SECRETS, {"name": name, "value": VALUE})) for name in ("LINKED", "DELETED"))
    for secret in (linked, deleted):
        made(client.post(f"{hub}/secrets/link/{secret['id']}"))
    made(client.post(f"{hub}/secrets", {"name": "OWN", "value": VALUE}))
    made(client_for(make_member()).post(f"{hub}/secrets", {"name": "THEIRS", "value": VALUE}))
    assert client.delete(f"/api/v1/secrets/{deleted['id']}").status_code == 204
    with acting_as_system():
        assert [link.secret_id for link in Link.objects.all()] == [linked["id"]]
        delete_environment(environment)
        assert not Link.objects.exists() and not Setting.objects.exists()
        assert [secret.name for secret in Secret.objects.all()] == ["LINKED"]


def test_a_file_is_handed_out_apart_and_all_of_it_is_to_be_masked(client, ada, environment, hub):
    content = base64.b64encode(b"-----BEGIN KEY-----\n").decode()
    secret = made(client.post(SECRETS, {"name": "KEY_FILE", "value": content, "isFile": True}))
    assert secret["isFile"] is True
    made(client.post(f"{hub}/secrets/link/{secret['id']}"))
    values = given(ada, environment)
    assert values == SandboxValues(files={"KEY_FILE": content})
    assert set(values.secret_texts()) == {content, "-----BEGIN KEY-----\n"}


@pytest.mark.urls("controlplane.urls_internal")
def test_a_holder_is_handed_what_its_own_team_has_set_and_only_for_its_own_releases(ada):
    owned, other = make_release(ada, visibility=Visibility.PUBLIC), make_release(make_member())
    bob, pool = make_member("bob"), make_pool()
    for member, value in ((ada, "the-owners-value"), (bob, "bobs-own-value")):
        body = ValueIn(name="API_KEY", value=value)
        create_setting(place_of(member.actor, owned.environment_id), body, is_secret=True)
        fund(member)
    handed = []
    for member in (bob, ada):
        make_run(member, release=owned, secrets=[{"key": "OTHER", "value": "of-the-run-itself"}])
        holder = holder_client(lease_run(pool).token)
        handed.append(holder.get(f"/internal/v1/releases/{owned.id}/values").json()["secrets"])
        assert holder.get(f"/internal/v1/releases/{other.id}/values").status_code == 404
    assert handed == [{"API_KEY": "bobs-own-value"}, {"API_KEY": "the-owners-value"}]
    assert holder_client("rsa_nobody").get(f"/internal/v1/releases/{owned.id}/values").status_code == 401


def test_the_time_of_use_is_told(client, ada, environment, hub):
    secret = made(client.post(SECRETS, {"name": "SHARED", "value": VALUE}))
    made(client.post(f"{hub}/secrets/link/{secret['id']}"))
    made(client.post(f"{hub}/secrets", {"name": "OWN", "value": VALUE}))
    assert {row["lastUsedAt"] for row in made(client.get(f"{hub}/secrets"))} == {None}
    with acting_as_system():
        hand_out(ada.team_id, environment.id, is_check=False)
    assert None not in {row["lastUsedAt"] for row in made(client.get(f"{hub}/secrets"))}


def test_a_check_gets_the_names_alone(client, ada, environment, hub):
    made(client.post(f"{hub}/secrets", {"name": "API_KEY", "value": VALUE}))
    made(client.post(f"{hub}/variables", {"name": "LEVEL", "value": "hard"}))
    with acting_as_system():
        values = hand_out(ada.team_id, environment.id, is_check=True)
    assert values == SandboxValues(variables={"LEVEL": "hard", "API_KEY": PLACEHOLDER})


def test_a_value_sealed_under_another_key_is_told_by_its_name(client, ada, environment, hub, settings):
    made(client.post(f"{hub}/secrets", {"name": "API_KEY", "value": VALUE}))
    made(client.post(f"{hub}/variables", {"name": "LEVEL", "value": "hard"}))
    settings.SECRET_KEY = "another-key-of-the-installation-entirely"
    assert [row["value"] for row in made(client.get(f"{hub}/variables"))] == [""]
    with acting_as_system(), pytest.raises(Exception, match="can no longer be read"):
        hand_out(ada.team_id, environment.id, is_check=False)


@pytest.mark.gate("R15")
def test_no_answer_and_no_log_line_of_the_api_has_a_value(client, ada, hub, caplog, gate: Gate):
    """R15, and (d) of case 40: every address of the team, refusals and failures included; the key of the caller neither."""
    caplog.set_level("INFO")
    answers = [client.post(path, {"name": "OWN", "value": VALUE}) for path in (SECRETS, f"{hub}/secrets", f"{hub}/secrets")]
    answers += [client.post(SECRETS, {"name": "OTHER", "value": [VALUE]}), client.post(SECRETS, {"name": VALUE, "value": VALUE})]
    secret = made(answers[0])["id"]
    answers += [client.patch(f"/api/v1/secrets/{secret}", {"value": VALUE, "nonsense": VALUE})]
    made(client.post(f"{hub}/secrets/link/{secret}"))
    run = {"model": {"name": "tiny"}, "environments": [{"id": "ada/digit-sum"}]}
    answers += [client.post("/api/v1/rft/runs", run | {"secrets": [{"key": key, "value": VALUE}]}) for key in ("A", "a")]
    reads = [SECRETS, f"/api/v1/secrets/{secret}", f"{hub}/secrets", f"{hub}/variables", "/api/v1/audit-events", "/api/v1/keys"]
    answers += [client.get(path) for path in reads]
    told = [answer.content.decode() for answer in answers] + [caplog.text]
    found = [text for text in told for canary in (*spellings(VALUE), ada.key) if canary in text]
    gate.record(trials=len(told), violations=len(found))
    assert {answer.status_code for answer in answers} == {200, 402, 409, 422} and found == []


def test_nothing_is_left_in_a_transaction_that_failed(client, ada, hub):
    client.post(f"{hub}/secrets", {"name": "API_KEY", "value": "x" * 20_000})
    with acting_for(ada.team_id):
        assert not Setting.objects.exists()
