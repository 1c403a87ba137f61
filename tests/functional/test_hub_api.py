"""The registry over HTTP, on a real database and a real object store: publishing, reading, refusing, withdrawing."""

import io
import json
import re
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.data.archives.corpus import HERE as CORPUS
from tests.data.archives.corpus import TOKEN
from tests.factories.answers import content_of
from tests.factories.packages import Package, build_package
from tests.factories.releases import GREEN, RED, make_release
from tests.factories.teams import make_member, make_shared_team
from trainer.contracts.packages import folder_hash

pytestmark = pytest.mark.django_db
HUB = "/api/v1/environmentshub"


@pytest.fixture
def ada():
    return make_member("ada")


@pytest.fixture
def client(client_of, ada):
    return client_of(ada)


def resolve(client, name: str = "digit-sum", **more) -> dict:
    answer = client.post(f"{HUB}/resolve", {"name": name, **more})
    assert answer.status_code == 200, answer.content
    return answer.json()["data"]


def put(client, url: str, data: bytes):
    parts = urlsplit(url)
    return client.put(f"{parts.path}?{parts.query}", data, content_type="application/octet-stream")


def send_wheel(client, environment_id: str, package: Package, data: bytes | None = None):
    made = client.post(f"{HUB}/{environment_id}/wheels", package.wheel_declaration())
    assert made.status_code == 200, made.content
    assert put(client, made.json()["data"]["upload_url"], package.wheel if data is None else data).status_code == 200
    return client.post(f"{HUB}/{environment_id}/wheels/{made.json()['data']['wheel_id']}/finalize")


def send_source(client, environment_id: str, package: Package, data: bytes | None = None):
    made = client.post(f"{HUB}/{environment_id}/versions", package.source_declaration())
    assert made.status_code == 200, made.content
    assert put(client, made.json()["data"]["upload_url"], package.source if data is None else data).status_code == 200
    return client.post(f"{HUB}/{environment_id}/versions/{made.json()['data']['version_id']}/finalize")


def push(client, package: Package, **more) -> dict:
    environment = resolve(client, package.name, **more)
    for answer in (send_wheel(client, environment["id"], package), send_source(client, environment["id"], package)):
        assert answer.status_code == 200, answer.content
    return environment


class TestPublishing:
    def test_a_push_makes_a_release_and_asks_for_its_check(self, client):
        from controlplane.core.models import OutboxMessage

        environment = push(client, build_package())
        found = client.get(f"{HUB}/ada/digit-sum/@latest").json()["data"]
        assert (found["id"], found["semantic_version"], found["visibility"]) == (environment["id"], "0.1.0", "PRIVATE")
        assert found["badge"] == "PENDING"
        assert found["metadata"]["description"] == "What digit-sum is for."
        asked = OutboxMessage.objects.get(task="releases.start_check")
        assert asked.payload == {"release_id": found["release_id"]}

    def test_resolve_creates_once_and_finds_afterwards(self, client):
        first, second = resolve(client), resolve(client, "Digit_Sum")
        assert (first["created"], second["created"]) == (True, False)
        assert first["id"] == second["id"]
        assert first["owner"] == {"name": "ada"}

    @pytest.mark.parametrize("name", ["json", "verifiers", "mini-swe-agent", "prime", "-x", "wheels"])
    def test_a_name_that_is_taken_is_refused(self, client, name):
        answer = client.post(f"{HUB}/resolve", {"name": name})
        assert answer.status_code == 422
        assert answer.json()["detail"][0]["loc"] == ["body", "name"]

    def test_a_name_that_looks_like_another_of_the_team_is_refused(self, client, ada):
        make_release(ada)
        answer = client.post(f"{HUB}/resolve", {"name": "d1git-surn"})
        assert answer.status_code == 422
        assert "ada/digit-sum" in answer.json()["detail"][0]["msg"]

    def test_nobody_goes_public_under_a_name_that_looks_like_a_public_one(self, client_of):
        make_release(make_member("graphite"), visibility="PUBLIC")
        imitator = client_of(make_member("graphlte"))
        resolve(imitator, "digit-sum")
        answer = imitator.post(f"{HUB}/resolve", {"name": "digit-sum", "visibility": "PUBLIC"})
        assert answer.status_code == 422
        assert "graphite/digit-sum" in answer.json()["detail"][0]["msg"]

    def test_a_private_name_is_told_to_nobody(self, client_of):
        make_release(make_member("graphite"))
        assert resolve(client_of(make_member("graphlte")), "digit-sum", visibility="PUBLIC")["created"]

    def test_the_same_content_is_refused_with_the_words_that_clients_look_for(self, client):
        environment = push(client, build_package())
        answer = client.post(f"{HUB}/{environment['id']}/wheels", build_package().wheel_declaration())
        assert answer.status_code == 409
        assert "content hash" in answer.json()["detail"] and "already exists" in answer.json()["detail"]

    def test_a_version_is_immutable(self, client):
        environment = push(client, build_package())
        other = build_package(content="x = 2\n")
        answer = client.post(f"{HUB}/{environment['id']}/versions", other.source_declaration())
        assert answer.status_code == 409
        assert "0.1.0" in answer.json()["detail"] and "already exists" in answer.json()["detail"]
        assert "--auto-bump" in answer.json()["hint"]

    def test_a_store_whose_streams_only_go_forward_serves_as_well(self, client, monkeypatch):
        """As S3's do; a wheel is read from its end."""
        from controlplane.core.objects.local import LocalStore

        class Forward(io.BytesIO):
            def seekable(self) -> bool:
                return False

            def seek(self, *where: int) -> int:
                raise io.UnsupportedOperation

        opened = LocalStore.open
        monkeypatch.setattr(LocalStore, "open", lambda self, key: Forward(opened(self, key).read()))
        environment, package = resolve(client), build_package()
        assert send_wheel(client, environment["id"], package).status_code == 200
        assert send_source(client, environment["id"], package).status_code == 200

    def test_a_wheel_that_is_stored_needs_no_second_upload(self, client):
        environment, package = resolve(client), build_package()
        send_wheel(client, environment["id"], package)
        again = client.post(f"{HUB}/{environment['id']}/wheels", package.wheel_declaration()).json()["data"]
        assert again["upload_url"] is None
        assert send_source(client, environment["id"], package).status_code == 200

    def test_an_upload_that_was_never_finished_is_cleared_away_by_a_later_push(self, client, shift_clock):
        from controlplane.core.objects import store
        from controlplane.core.tenancy import acting_as_system
        from controlplane.hub.models import Upload

        environment, package = resolve(client), build_package()
        made = client.post(f"{HUB}/{environment['id']}/wheels", package.wheel_declaration()).json()["data"]
        put(client, made["upload_url"], package.wheel)
        shift_clock(timedelta(hours=2))
        client.post(f"{HUB}/{environment['id']}/wheels", package.wheel_declaration())
        with acting_as_system():
            assert not Upload.objects.filter(id=made["wheel_id"]).exists()
        assert store().stat(f"hub/uploads/{made['wheel_id']}") is None

    def test_a_source_without_its_wheel_is_refused(self, client):
        answer = send_source(client, resolve(client)["id"], build_package())
        assert answer.status_code == 422
        assert "wheel" in answer.json()["detail"][0]["msg"]

    def test_finalizing_before_the_upload_is_refused(self, client):
        environment, package = resolve(client), build_package()
        made = client.post(f"{HUB}/{environment['id']}/wheels", package.wheel_declaration()).json()["data"]
        answer = client.post(f"{HUB}/{environment['id']}/wheels/{made['wheel_id']}/finalize")
        assert (answer.status_code, answer.json()["code"]) == (409, "not_uploaded")

    @pytest.mark.parametrize(
        ("field", "value"),
        [("content_hash", "xyz"), ("semantic_version", "one"), ("filename", "../x.whl"), ("size", 0), ("colour", "red")],
    )
    def test_a_bad_declaration_names_the_field(self, client, field, value):
        answer = client.post(f"{HUB}/{resolve(client)['id']}/wheels", build_package().wheel_declaration() | {field: value})
        assert answer.status_code == 422
        assert answer.json()["detail"][0]["loc"] == ["body", field]


class TestHostileArchives:
    @pytest.mark.parametrize("name", ["traversal.whl", "link.whl", "bomb.whl", "record-lies.whl", "pth.whl"])
    def test_a_bad_wheel_is_refused_and_leaves_nothing(self, client, settings, name):
        from controlplane.core.tenancy import acting_as_system
        from controlplane.hub.models import Upload

        package = build_package("demo-env")
        data = (CORPUS / "reject" / name).read_bytes()
        bad = Package(package.name, package.version, data, package.source, package.content_hash)
        before = stored_objects(settings)
        answer = send_wheel(client, resolve(client, "demo-env")["id"], bad)
        assert answer.status_code == 422
        assert answer.json()["code"] == "archive_refused"
        assert answer.json()["detail"][0]["loc"][:2] == ["body", "archive"]
        assert stored_objects(settings) == before
        with acting_as_system():
            assert not Upload.objects.exists()

    def test_the_member_is_named(self, client):
        package = build_package("demo-env")
        data = (CORPUS / "reject" / "traversal.whl").read_bytes()
        bad = Package(package.name, package.version, data, package.source, package.content_hash)
        problem = send_wheel(client, resolve(client, "demo-env")["id"], bad).json()["detail"][0]
        assert problem["loc"] == ["body", "archive", "../evil.py"]
        assert "../evil.py" in problem["msg"]

    def test_a_key_in_the_source_is_named_by_file_and_line_and_never_repeated(self, client):
        package = build_package("demo-env")
        data = (CORPUS / "reject" / "secret.whl").read_bytes()
        bad = Package(package.name, package.version, data, package.source, package.content_hash)
        answer = send_wheel(client, resolve(client, "demo-env")["id"], bad)
        problem = answer.json()["detail"][0]
        assert (answer.status_code, answer.json()["code"]) == (422, "secret_found")
        assert problem["loc"] == ["body", "archive", "demo_env/judge.py", 3]
        assert "not-a-secret" in answer.json()["hint"]
        assert TOKEN.decode() not in answer.content.decode()

    @pytest.mark.parametrize("name", ["traversal.tar.gz", "symlink.tar.gz", "device.tar.gz"])
    def test_a_bad_source_makes_no_release(self, client, name):
        package = build_package("demo-env")
        environment = resolve(client, "demo-env")
        send_wheel(client, environment["id"], package)
        bad = Package(package.name, package.version, package.wheel, (CORPUS / "reject" / name).read_bytes(), package.content_hash)
        assert send_source(client, environment["id"], bad).status_code == 422
        assert client.get(f"{HUB}/ada/demo-env/@latest").status_code == 404

    def test_other_bytes_than_declared_are_refused(self, client):
        package, other = build_package(), build_package(content="x = 2\n")
        answer = send_wheel(client, resolve(client)["id"], package, other.wheel)
        assert answer.status_code == 422 and "sha256" in answer.json()["detail"][0]["msg"]

    def test_a_signed_address_takes_no_more_than_was_announced(self, client):
        environment, package = resolve(client), build_package()
        made = client.post(f"{HUB}/{environment['id']}/wheels", package.wheel_declaration()).json()["data"]
        assert put(client, made["upload_url"], package.wheel + b"more").status_code == 413


def stored_objects(settings) -> set[Path]:
    root = Path(urlsplit(settings.OBJECT_STORE_URL).path)
    return {path for path in root.rglob("*") if path.is_file()}


class TestReading:
    READS = (
        "@latest",
        "@0.1.0",
        "@0.1.0/readme",
        "@0.1.0/badge",
        "@0.1.0/log",
        "@0.1.0/source",
        "@0.1.0/inspect",
        "status",
        "versions",
    )

    @pytest.mark.parametrize("read", READS)
    def test_a_private_environment_of_others_looks_absent(self, client_of, ada, read):
        make_release(ada)
        stranger = client_of(make_member("eve"))
        for client in (stranger, client_of()):
            foreign = client.get(f"{HUB}/ada/digit-sum/{read}")
            absent = client.get(f"{HUB}/ada/digit-max/{read}")
            assert foreign.status_code == absent.status_code == 404
            assert same_but_for_the_name(foreign, absent)

    @pytest.mark.parametrize("read", READS)
    def test_a_public_one_is_everybodys_to_read(self, client_of, ada, read):
        make_release(ada, visibility="PUBLIC")
        assert client_of().get(f"{HUB}/ada/digit-sum/{read}").status_code in (200, 302)

    def test_writes_of_others_look_like_writes_to_nothing(self, client_of, ada):
        release = make_release(ada, visibility="PUBLIC")
        stranger = client_of(make_member("eve"))
        body = build_package(version="0.2.0").wheel_declaration()
        for answer in (
            stranger.post(f"{HUB}/{release.environment_id}/wheels", body),
            stranger.post(f"{HUB}/{release.environment_id}/versions", body),
            stranger.delete(f"{HUB}/{release.environment_id}"),
            stranger.delete(f"{HUB}/ada/digit-sum"),
            stranger.delete(f"{HUB}/ada/digit-sum/@0.1.0"),
        ):
            assert answer.status_code == 404

    def test_visitors_write_nothing(self, client_of, ada):
        release = make_release(ada, visibility="PUBLIC")
        assert client_of().post(f"{HUB}/resolve", {"name": "x1"}).status_code == 401
        assert client_of().delete(f"{HUB}/{release.environment_id}").status_code == 401

    def test_a_member_reads_the_teams_environment_without_naming_the_team(self, client_of, ada):
        bob = make_member("bob")
        for_team, _ = make_shared_team(ada, bob, slug="lab")
        make_release(for_team)
        assert client_of(bob).get(f"{HUB}/lab/digit-sum/@latest").status_code == 200
        assert [row["name"] for row in client_of(bob).get(f"{HUB}/").json()["data"]] == ["digit-sum"]

    def test_resolving_somebody_elses_public_name_finds_it(self, client_of, ada):
        release = make_release(ada, visibility="PUBLIC")
        found = resolve(client_of(make_member("eve")), "digit-sum", owner_slug="ada")
        assert (found["id"], found["created"]) == (release.environment_id, False)

    def test_the_list_is_searched_and_paged(self, client, client_of, ada):
        for name in ("digit-sum", "digit-max", "poems"):
            make_release(ada, build_package(name), visibility="PUBLIC")
        visitor = client_of()
        assert visitor.get(f"{HUB}/", {"search": "poem"}).json()["total_count"] == 1
        page = visitor.get(f"{HUB}/", {"limit": 1, "sort_by": "name", "sort_order": "asc"}).json()
        assert (page["data"][0]["name"], page["data"][0]["badge"], page["total_count"]) == ("digit-max", "GREEN", 3)
        assert visitor.get(f"{HUB}/", {"owner": "nobody"}).json()["data"] == []

    def test_the_pages_of_a_release(self, client, ada):
        make_release(ada, build_package(content="y = 3\n"))
        release = f"{HUB}/ada/digit-sum/@0.1.0"
        assert client.get(f"{release}/readme").json()["data"]["html"] == "<h1>digit-sum</h1>\n"
        assert client.get(f"{release}/log").json()["data"]["log"] == "ok\n"
        folder = client.get(f"{release}/inspect").json()["data"]
        assert [entry["name"] for entry in folder["entries"]] == ["digit_sum", "README.md", "pyproject.toml"]
        file = client.get(f"{release}/inspect", {"path": "digit_sum/__init__.py", "max_bytes": 3}).json()["data"]
        assert (file["content"], file["truncated"], file["total_bytes"]) == ("y =", True, 6)
        assert client.get(f"{release}/inspect", {"path": "nope"}).status_code == 404

    def test_the_source_is_what_was_pushed(self, client, ada):
        package = build_package()
        make_release(ada, package)
        found = client.get(f"{HUB}/ada/digit-sum/@latest").json()["data"]
        leads = client.get(urlsplit(found["package_url"]).path)
        assert leads.status_code == 302
        parts = urlsplit(leads["Location"])
        fetched = client.get(f"{parts.path}?{parts.query}")
        assert content_of(fetched) == package.source

    def test_a_release_is_found_by_its_content_hash(self, client, ada):
        release = make_release(ada)
        assert client.get(f"{HUB}/ada/digit-sum/@{release.content_hash}").json()["data"]["release_id"] == release.id

    def test_the_public_client_compares_a_folder_by_a_hash_of_its_own(self, client):
        """Case 6: `eval run` after a pull is not "ahead"; everywhere else a release has the hash that it was pushed with."""
        package = build_package()
        push(client, package)
        found, name = client.get(f"{HUB}/ada/digit-sum/@latest").json()["data"], package.name.replace("-", "_")
        files = {"README.md": b"# digit-sum\n", f"{name}/__init__.py": b"x = 1\n"}
        files["pyproject.toml"] = b'[project]\nname = "digit-sum"\nversion = "0.1.0"\n'
        assert found["latest_version"]["content_hash"] == folder_hash({path: [content] for path, content in files.items()})
        status = client.get(f"{HUB}/ada/digit-sum/status").json()["data"]
        assert found["content_hash"] == status["latest_version"]["content_hash"] == package.content_hash

    def test_latest_is_the_highest_final_version(self, client, ada):
        for version in ("0.9.0", "0.10.0", "1.0.0rc1"):
            make_release(ada, build_package(version=version, content=f"v = '{version}'\n"))
        assert client.get(f"{HUB}/ada/digit-sum/@latest").json()["data"]["semantic_version"] == "0.10.0"
        rows = client.get(f"{HUB}/ada/digit-sum/versions").json()["data"]["versions"]
        assert [row["version"] for row in rows] == ["1.0.0rc1", "0.10.0", "0.9.0"]


def same_but_for_the_name(one, other) -> bool:
    def blurred(answer) -> dict:
        return json.loads(re.sub(r"digit-(sum|max)", "NAME", answer.content.decode())) | {"request_id": ""}

    return blurred(one) == blurred(other)


class TestWithdrawing:
    def test_latest_passes_a_yanked_release_over_and_its_exact_name_still_finds_it(self, client, ada):
        make_release(ada, build_package(version="0.1.0"))
        make_release(ada, build_package(version="0.2.0", content="x = 2\n"))
        assert client.delete(f"{HUB}/ada/digit-sum/@0.2.0").status_code == 204
        assert client.get(f"{HUB}/ada/digit-sum/@latest").json()["data"]["semantic_version"] == "0.1.0"
        assert client.get(f"{HUB}/ada/digit-sum/@0.2.0").json()["data"]["yanked"] is True

    @pytest.mark.parametrize("by_name", [True, False])
    def test_a_deleted_environment_is_gone_and_its_versions_stay_taken(self, client, ada, by_name):
        release = make_release(ada)
        target = "ada/digit-sum" if by_name else release.environment_id
        assert client.delete(f"{HUB}/{target}").status_code == 204
        assert client.get(f"{HUB}/ada/digit-sum/@0.1.0").status_code == 404
        again = resolve(client)
        other = build_package(content="x = 2\n").source_declaration()
        assert client.post(f"{HUB}/{again['id']}/versions", other).status_code == 409


class TestChecks:
    def test_a_verdict_becomes_the_badge(self, client, ada):
        make_release(ada, verdict=RED)
        found = client.get(f"{HUB}/ada/digit-sum/@latest/badge").json()["data"]
        assert found["badge"] == "RED"
        assert (found["verdict"]["module"], found["verdict"]["line"]) == ("digit_sum.tasks", 7)
        assert client.get(f"{HUB}/ada/digit-sum/status").json()["data"]["action"] == {"status": "FAILED"}

    def test_nothing_starts_on_a_red_release_unless_forced(self, ada):
        from controlplane.hub.access import resolve_release
        from controlplane.hub.errors import RedBadge

        release = make_release(ada, verdict=RED)
        with pytest.raises(RedBadge, match=r"digit_sum\.tasks, line 7"):
            resolve_release(ada.actor, "ada/digit-sum")
        assert resolve_release(ada.actor, "ada/digit-sum@0.1.0", forced=True).id == release.id
        assert resolve_release(ada.actor, release.environment_id, forced=True).id == release.id

    def test_a_name_alone_is_the_acting_teams(self, ada):
        from controlplane.core.errors import NotFound
        from controlplane.hub.access import resolve_release

        release = make_release(ada)
        assert resolve_release(ada.actor, "digit-sum").id == release.id
        with pytest.raises(NotFound, match="no environment 'digit-sum'"):
            resolve_release(make_member().actor, "digit-sum")

    def test_a_release_spec_carries_a_wheel_that_can_be_fetched(self, client_of, ada):
        from controlplane.hub.queries import release_spec

        package = build_package()
        spec = release_spec(make_release(ada, package))
        parts = urlsplit(spec.wheel_url)
        fetched = client_of().get(f"{parts.path}?{parts.query}")
        assert content_of(fetched) == package.wheel
        assert (spec.environment, spec.version, spec.module) == ("ada/digit-sum", "0.1.0", "digit_sum")

    def test_a_check_is_leased_once(self, ada):
        from controlplane.core.tenancy import acting_as_system
        from controlplane.hub.access import release_by_id
        from controlplane.hub.attempts import begin_check

        release = make_release(ada, verdict=None)
        granted = begin_check(release.id)
        assert granted is not None and granted.lease.subject_id == release.id
        assert release_by_id(release.id).badge == "BUILDING"
        assert begin_check(release.id) is None
        with acting_as_system():
            assert granted.lease.team_id == ada.team_id

    def test_a_checked_release_is_not_checked_again(self, ada):
        from controlplane.hub.attempts import begin_check

        assert begin_check(make_release(ada, verdict=GREEN).id) is None

    def test_a_release_whose_checks_keep_dying_is_red(self, ada):
        from controlplane.core.tenancy import acting_as_system
        from controlplane.hub.access import release_by_id
        from controlplane.hub.attempts import begin_check
        from controlplane.pools.services import take_back

        release = make_release(ada, verdict=None)
        for _ in range(3):
            assert release_by_id(release.id).badge == "PENDING"
            granted = begin_check(release.id)
            with acting_as_system():
                take_back(granted.lease.id, reason="holder died", only_expired=False)
        found = release_by_id(release.id)
        assert found.badge == "RED" and "3 times" in found.verdict["summary"]
