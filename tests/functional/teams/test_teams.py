"""Which team a request acts for, and who is in it."""

import pytest

from tests.factories.teams import Member, client_for, make_member, make_shared_team

pytestmark = pytest.mark.django_db


def test_the_team_is_named_in_query_header_or_body_else_it_is_the_personal_one():
    member = make_member()
    shared = make_shared_team(member)[0]
    client = client_for(Member(member.actor, member.key))
    path = f"/api/v1/teams/{shared.team_id}/members"
    assert client.get(path).json()["total_count"] == 1
    for query in ("team_id", "teamId"):
        assert client.get(f"/api/v1/audit-events?{query}={shared.team_id}").json()["items"][0]["action"] == "team.created"
    events = client.get("/api/v1/audit-events", headers={"X-Prime-Team-ID": shared.team_id}).json()["items"]
    assert [event["action"] for event in events] == ["team.created"]
    assert client.post("/api/v1/keys", {"name": "x", "team_id": shared.team_id}).status_code == 201
    assert client.post("/api/v1/keys", {"name": "x", "team_id": "c" + "0" * 24}).status_code == 404


def test_teams_lists_the_shared_ones_in_the_wires_shape():
    member = make_member()
    shared = make_shared_team(member, slug="lab")[0]
    page = client_for(member).get("/api/v1/user/teams?offset=0&limit=100").json()
    assert page["total_count"] == 1 and set(page) == {"data", "total_count", "offset", "limit"}
    (row,) = page["data"]
    assert set(row) == {"teamId", "name", "slug", "role", "createdAt"}
    assert (row["teamId"], row["slug"], row["role"]) == (shared.team_id, "lab", "ADMIN")


def test_members_in_the_wires_shape():
    ada, bob = make_member(), make_member()
    shared = make_shared_team(ada, bob)
    page = client_for(bob).get(f"/api/v1/teams/{shared[0].team_id}/members").json()
    assert [(row["userEmail"], row["role"]) for row in page["data"]] == [
        (ada.actor.user.email, "ADMIN"),
        (bob.actor.user.email, "MEMBER"),
    ]
    assert set(page["data"][0]) == {"userId", "userName", "userEmail", "role", "joinedAt"}


def test_only_admins_of_shared_teams_add_members():
    ada, bob, eve = make_member(), make_member(), make_member()
    shared = make_shared_team(ada, bob)
    path, body = f"/api/v1/teams/{shared[0].team_id}/members", {"email": eve.actor.user.email}
    assert client_for(eve).post(path, body).status_code == 404
    assert client_for(bob).post(path, body).json()["code"] == "admin_required"
    assert client_for(ada).post(path, body).status_code == 201
    assert client_for(ada).post(f"/api/v1/teams/{ada.team_id}/members", body).json()["code"] == "personal_team"


def test_the_slug_is_the_personal_teams():
    member = make_member("ada")
    make_member("bob")
    client = client_for(member)
    assert client.patch("/api/v1/user/slug", {"slug": "countess"}).json()["data"]["slug"] == "countess"
    taken = client.patch("/api/v1/user/slug", {"slug": "bob"})
    assert taken.status_code == 409 and "already taken" in taken.json()["detail"]
    assert client.get("/api/v1/user/whoami/").json()["data"]["slug"] == "countess"


def test_a_member_leaves_and_an_admin_removes_but_a_team_keeps_an_admin():
    ada, bob, eve = make_member(), make_member(), make_member()
    shared = make_shared_team(ada, bob, eve)
    path = f"/api/v1/teams/{shared[0].team_id}/members"
    assert client_for(bob).delete(f"{path}/{eve.actor.user_id}").json()["code"] == "admin_required"
    assert client_for(bob).delete(f"{path}/{bob.actor.user_id}").status_code == 204
    assert client_for(bob).get(path).status_code == 404, "who left sees nothing of the team"
    assert client_for(ada).delete(f"{path}/{ada.actor.user_id}").json()["code"] == "last_admin"
    demotion = client_for(ada).post(path, {"email": ada.actor.user.email, "role": "MEMBER"})
    assert demotion.json()["code"] == "last_admin"
    assert client_for(ada).delete(f"{path}/{eve.actor.user_id}").status_code == 204
    assert client_for(ada).delete(f"{path}/{eve.actor.user_id}").status_code == 404
    personal = client_for(ada).delete(f"/api/v1/teams/{ada.team_id}/members/{ada.actor.user_id}")
    assert personal.json()["code"] == "personal_team"
