"""The audit log: written with the change, read by admins, changed by nobody."""

import psycopg
import pytest
from django.db import DatabaseError, transaction

from controlplane.audit.models import AuditEvent
from controlplane.core.tenancy import acting_as_system
from tests.factories.teams import client_for, make_member, make_shared_team


@pytest.mark.django_db
def test_a_change_leaves_who_did_what_in_which_request():
    member = make_member()
    answer = client_for(member).post("/api/v1/keys", {"name": "ci"})
    event = client_for(member).get("/api/v1/audit-events").json()["items"][0]
    assert (event["action"], event["object_id"]) == ("key.created", answer.json()["id"])
    assert (event["user_email"], event["request_id"]) == (member.actor.user.email, answer["X-Request-ID"])
    assert event["key_prefix"] and member.key.startswith(f"rsk_{event['key_prefix']}")
    assert answer.json()["key"] not in str(event)


@pytest.mark.django_db
def test_a_change_that_fails_leaves_nothing():
    member = make_member()
    client_for(member).post("/api/v1/keys", {"name": "ci", "scopes": ["fly"]})
    actions = [event["action"] for event in client_for(member).get("/api/v1/audit-events").json()["items"]]
    assert actions == ["key.created", "user.signed_up"]


@pytest.mark.django_db
def test_pages_are_newest_first_and_end():
    client = client_for(make_member())
    for number in range(4):
        client.post("/api/v1/keys", {"name": f"key {number}"})
    seen, cursor = [], ""
    while cursor is not None:
        page = client.get("/api/v1/audit-events", {"limit": 2, "cursor": cursor}).json()
        seen += [event["id"] for event in page["items"]]
        cursor = page["next_cursor"]
    assert len(seen) == len(set(seen)) == 6
    assert client.get("/api/v1/audit-events", {"cursor": "nonsense"}).status_code == 422


@pytest.mark.django_db
def test_only_admins_read_it():
    ada, bob = make_member(), make_member()
    _, guest = make_shared_team(ada, bob)
    assert client_for(guest).get("/api/v1/audit-events").json()["code"] == "admin_required"


@pytest.mark.django_db
@pytest.mark.parametrize("change", [lambda rows: rows.update(action="x"), lambda rows: rows.delete()])
def test_the_application_cannot_change_it(change):
    make_member()
    with acting_as_system(), pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
        change(AuditEvent.objects.all())


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "statement", ["UPDATE audit_auditevent SET action = 'x'", "DELETE FROM audit_auditevent", "TRUNCATE audit_auditevent"]
)
def test_the_owner_cannot_change_it_either(owner_connection, statement: str):
    make_member()
    with pytest.raises(psycopg.Error, match="append-only"):
        owner_connection.execute(statement)
