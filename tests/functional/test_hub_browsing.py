"""Finding environments and sharing them: search, filters, order, stars, forks, collaborators."""

import pytest

from tests.factories.packages import build_package
from tests.factories.releases import RED, make_release
from tests.factories.teams import client_for, make_member, make_shared_team
from tests.functional.test_hub_api import push, resolve, send_source, send_wheel

pytestmark = pytest.mark.django_db
HUB = "/api/v1/environmentshub"


@pytest.fixture
def ada():
    return make_member("ada")


def names(member=None, **query) -> list[str]:
    answer = client_for(member).get(f"{HUB}/", query)
    assert answer.status_code == 200, answer.content
    assert answer.json()["total_count"] == len(answer.json()["data"])
    return [row["name"] for row in answer.json()["data"]]


class TestSearch:
    @pytest.fixture(autouse=True)
    def shelf(self, ada):
        make_release(ada, build_package("word-chains", readme="# Chains\n\nPlay *shiritori*.\n"), visibility="PUBLIC")
        make_release(ada, build_package("poems", readme="Rhymes are scored by their endings.\n"), visibility="PUBLIC")
        make_release(ada, build_package("shiritori", readme="Another game.\n"), visibility="PUBLIC")

    @pytest.mark.parametrize(
        ("search", "found"),
        [
            ("chains", ["word-chains"]),
            ("word ch", ["word-chains"]),
            ("ord-cha", ["word-chains"]),
            ("rhyme scoring", ["poems"]),
            ("SHIRI", ["shiritori", "word-chains"]),
            ("digits", ["poems", "shiritori", "word-chains"]),
            ("nothing like it", []),
            ("'); drop table", []),
            ("&|!:*<->", []),
        ],
    )
    def test_names_tags_descriptions_and_readmes_are_searched(self, search, found):
        assert sorted(names(search=search)) == found

    def test_the_best_match_comes_first_unless_an_order_is_asked_for(self, ada):
        assert names(search="shiritori") == ["shiritori", "word-chains"]
        assert names(search="shiritori", sort_by="name", sort_order="desc") == ["word-chains", "shiritori"]

    def test_a_private_one_is_found_by_its_team_alone(self, ada):
        make_release(ada, build_package("shiritori-secret"))
        assert "shiritori-secret" in names(ada, search="shiritori")
        assert "shiritori-secret" not in names(make_member(), search="shiritori")
        assert "shiritori-secret" not in names(search="shiritori")

    def test_a_push_is_found_by_its_new_words(self, ada):
        make_release(ada, build_package("poems", "0.2.0", readme="Now with haiku.\n"), visibility="PUBLIC")
        assert names(search="haiku") == ["poems"] and names(search="rhymes") == []


class TestFilters:
    def test_every_parameter_of_the_public_client_narrows_or_orders(self, ada):
        mate = make_member("bob")
        lead, _ = make_shared_team(ada, mate, slug="lab")
        make_release(ada, build_package("open-one"), visibility="PUBLIC")
        make_release(ada, build_package("closed-one"), verdict=RED)
        make_release(lead, build_package("team-one"))
        assert names(ada, sort_by="name", sort_order="asc") == ["closed-one", "open-one", "team-one"]
        assert names(ada, include_teams="false", mine_only="true", sort_by="name", sort_order="asc") == ["closed-one", "open-one"]
        assert names(ada, owner="lab") == ["team-one"]
        assert names(ada, visibility="PUBLIC") == ["open-one"]
        assert names(ada, badge="RED") == ["closed-one"]
        assert names(ada, tags=["digits", "nope"]) == [] and len(names(ada, tags=["digits"])) == 3
        assert names(mate, mine_only="true") == ["team-one"]

    @pytest.mark.parametrize(
        ("field", "value"), [("badge", "BLUE"), ("sort_by", "luck"), ("limit", "0"), ("starred_only", "perhaps")]
    )
    def test_a_bad_parameter_is_named(self, field, value):
        answer = client_for().get(f"{HUB}/", {field: value})
        assert answer.status_code == 422
        assert answer.json()["detail"][0]["loc"] == ["query", field]


class TestStars:
    def test_stars_are_counted_once_per_user_and_taken_back(self, ada):
        make_release(ada, visibility="PUBLIC")
        make_release(ada, build_package("poems"), visibility="PUBLIC")
        fans = [make_member() for _ in range(2)]
        for fan in (*fans, fans[0]):
            given = client_for(fan).post(f"{HUB}/ada/digit-sum/star")
        assert given.json()["data"] == {"stars": 2, "starred": True}
        assert names(sort_by="stars") == ["digit-sum", "poems"]
        assert names(fans[0], starred_only="true") == ["digit-sum"] and names(ada, starred_only="true") == []
        taken = client_for(fans[0]).delete(f"{HUB}/ada/digit-sum/star")
        assert taken.json()["data"] == {"stars": 1, "starred": False}
        found = client_for(fans[1]).get(f"{HUB}/ada/digit-sum/@latest").json()["data"]
        assert (found["stars"], found["starred"]) == (1, True)

    def test_what_one_cannot_see_gets_no_star(self, ada):
        make_release(ada)
        assert client_for(make_member()).post(f"{HUB}/ada/digit-sum/star").status_code == 404
        assert client_for().post(f"{HUB}/ada/digit-sum/star").status_code == 401


class TestForks:
    def test_a_fork_is_private_ones_own_and_checked_again(self, ada):
        from controlplane.core.models import OutboxMessage

        original = make_release(ada, visibility="PUBLIC")
        eve = make_member("eve")
        made = client_for(eve).post(f"{HUB}/ada/digit-sum/fork").json()["data"]
        assert made["slug"] == "eve/digit-sum"
        found = client_for(eve).get(f"{HUB}/eve/digit-sum/@latest").json()["data"]
        assert (found["id"], found["release_id"]) == (made["environment_id"], made["version_id"])
        assert (found["visibility"], found["badge"], found["content_hash"]) == ("PRIVATE", "PENDING", original.content_hash)
        assert (found["forked_from"], found["provenance"]["pushed_by"]) == ("ada/digit-sum@0.1.0", "eve")
        assert OutboxMessage.objects.filter(payload={"release_id": made["version_id"]}).count() == 1
        assert client_for(eve).get(f"{HUB}/eve/digit-sum/@0.1.0/source").status_code == 302
        assert client_for(ada).get(f"{HUB}/ada/digit-sum/@latest").json()["data"]["forks"] == 0
        assert client_for(eve).get(f"{HUB}/ada/digit-sum/@latest").json()["data"]["forks"] == 1
        push(client_for(eve), build_package(version="0.2.0", content="x = 2\n"))

    def test_a_private_origin_is_told_to_those_who_may_see_it(self, ada):
        bob = make_member("bob")
        lead, _ = make_shared_team(ada, bob, slug="lab")
        make_release(lead)
        client_for(bob).post(f"{HUB}/lab/digit-sum/fork")
        resolve(client_for(bob), "digit-sum", visibility="PUBLIC")
        assert client_for(bob).get(f"{HUB}/bob/digit-sum/@latest").json()["data"]["forked_from"] == "lab/digit-sum@0.1.0"
        assert client_for().get(f"{HUB}/bob/digit-sum/@latest").json()["data"]["forked_from"] is None

    def test_a_team_may_be_named_and_a_name_is_taken_once(self, ada):
        make_shared_team(ada, slug="lab")
        make_release(ada)
        assert client_for(ada).post(f"{HUB}/ada/digit-sum/fork", {"team_slug": "lab"}).json()["data"]["slug"] == "lab/digit-sum"
        assert client_for(ada).post(f"{HUB}/ada/digit-sum/fork", {"team_slug": "lab"}).status_code == 409
        assert client_for(ada).post(f"{HUB}/ada/digit-sum/fork", {"team_slug": "nobodys"}).status_code == 404

    def test_a_release_in_quarantine_is_not_forked(self, ada):
        from controlplane.hub import services

        services.quarantine(make_release(ada, visibility="PUBLIC"), "it leaks")
        answer = client_for(make_member()).post(f"{HUB}/ada/digit-sum/fork")
        assert (answer.status_code, answer.json()["code"]) == (409, "quarantined")


class TestCollaborators:
    @pytest.fixture
    def bob(self, ada):
        make_release(ada)
        bob = make_member("bob")
        invited = client_for(ada).post(f"{HUB}/ada/digit-sum/collaborators", {"user": "bob"})
        assert [row["user"] for row in invited.json()["data"]["collaborators"]] == ["bob"]
        return bob

    def test_one_reads_and_pushes_what_one_was_invited_to(self, ada, bob):
        client, package = client_for(bob), build_package(version="0.2.0", content="x = 2\n")
        assert names(bob, mine_only="true") == ["digit-sum"]
        environment = resolve(client, "digit-sum", owner_slug="ada")
        assert send_wheel(client, environment["id"], package).status_code == 200
        assert send_source(client, environment["id"], package).status_code == 200
        found = client.get(f"{HUB}/ada/digit-sum/@latest").json()["data"]
        assert (found["semantic_version"], found["provenance"]["pushed_by"]) == ("0.2.0", "bob")
        assert (found["may_push"], found["is_owner"]) == (True, False)
        assert client_for().get("/" + found["simple_index_url"].split("/", 3)[3]).status_code == 200

    @pytest.mark.parametrize(
        ("method", "path", "body"),
        [
            ("delete", "", None),
            ("delete", "/@0.1.0", None),
            ("post", "/collaborators", {"user": "ada"}),
            ("delete", "/collaborators/bob", None),
        ],
    )
    def test_what_only_the_team_may_do_looks_absent(self, ada, bob, method, path, body):
        answer = getattr(client_for(bob), method)(f"{HUB}/ada/digit-sum{path}", body if body is not None else "")
        assert answer.status_code == 404

    def test_whoever_was_removed_is_a_stranger_again(self, ada, bob):
        index = client_for(bob).get(f"{HUB}/ada/digit-sum/@latest").json()["data"]["simple_index_url"]
        assert client_for(ada).delete(f"{HUB}/ada/digit-sum/collaborators/bob").status_code == 204
        assert client_for(bob).get(f"{HUB}/ada/digit-sum/@latest").status_code == 404
        assert client_for().get("/" + index.split("/", 3)[3]).status_code == 404
        assert client_for(ada).delete(f"{HUB}/ada/digit-sum/collaborators/bob").status_code == 404

    def test_inviting_is_audited_and_a_name_must_be_somebodys(self, ada, bob):
        from controlplane.audit.models import AuditEvent
        from controlplane.core.tenancy import acting_for

        with acting_for(ada.team_id):
            assert AuditEvent.objects.get(action="environment.collaborator_invited").detail == {"user": "bob"}
        assert client_for(ada).post(f"{HUB}/ada/digit-sum/collaborators", {"user": "nobody-here"}).status_code == 404
        assert client_for(ada).post(f"{HUB}/ada/digit-sum/collaborators", {}).status_code == 422
