"""The hub as a package index: pages in both spellings, private releases behind a token, and the real installers on both."""

import http.server
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import pytest

from controlplane.hub.dependencies import requirement_of
from tests.factories.answers import content_of
from tests.factories.packages import build_package
from tests.factories.releases import make_release
from tests.factories.teams import Member, client_for, make_member, make_shared_team
from tests.factories.wheels import make_wheel

HUB = "/api/v1/environmentshub"
JSON = "application/vnd.pypi.simple.v1+json"
PIP = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html; q=0.1, text/html; q=0.01"


@pytest.fixture
def ada(db) -> Member:
    return make_member("ada")


def detail(member: Member | None, slug: str = "ada/digit-sum") -> dict:
    return client_for(member).get(f"{HUB}/{slug}/@latest").json()["data"]


def page(url: str, accept: str = "text/html"):
    """As installers ask: without a credential."""
    return client_for().get(urlsplit(url).path, headers={"Accept": accept})


class TestPages:
    def test_an_index_shows_one_project_and_serves_its_wheel(self, ada):
        package = build_package()
        release = make_release(ada, package, visibility="PUBLIC")
        make_release(ada, build_package("lighthouse"), visibility="PUBLIC")
        root = detail(None)["simple_index_url"]
        assert "lighthouse" not in page(root).content.decode()
        assert page(f"{root}lighthouse/").status_code == 404
        assert page(f"{root}requests/").status_code == 404
        listed = page(f"{root}digit-sum/").content.decode()
        address, digest = re.search(r'href="([^"#]+)#sha256=([0-9a-f]+)"', listed).groups()
        assert digest == release.wheel_sha256
        path = urlsplit(urljoin(f"{root}digit-sum/", address)).path
        assert content_of(client_for().get(path)) == package.wheel
        assert client_for().head(path)["Content-Length"] == str(len(package.wheel))

    def test_an_owner_has_no_index_of_everything(self, ada):
        """It would let one of their names shadow a public dependency of another."""
        make_release(ada, visibility="PUBLIC")
        assert client_for().get("/hub/ada/simple/digit-sum/").status_code == 404

    @pytest.mark.parametrize(
        ("accept", "expected"),
        [
            ("", "text/html"),
            ("*/*", "text/html"),
            ("text/html", "text/html"),
            (JSON, JSON),
            (PIP, JSON),
            ("application/vnd.pypi.simple.latest+json", JSON),
            (f"{JSON};q=0.1, text/html", "text/html"),
            ("application/vnd.pypi.simple.v1+html, text/html;q=0.1", "application/vnd.pypi.simple.v1+html"),
            (f"{JSON};q=nonsense", "text/html"),
            ("image/png", "text/html"),
        ],
    )
    def test_the_spelling_is_what_the_client_prefers(self, ada, accept, expected):
        make_release(ada, visibility="PUBLIC")
        for path in ("simple/", "simple/digit-sum/"):
            answer = page(f"/hub/ada/digit-sum/{path}", accept)
            assert answer["Content-Type"].split(";")[0] == expected
            assert answer["Vary"].split(", ")[0] == "Accept"

    def test_the_json_page_says_what_the_html_page_says_and_more(self, ada):
        package = build_package()
        make_release(ada, package, visibility="PUBLIC")
        found = json.loads(page("/hub/ada/digit-sum/simple/digit-sum/", JSON).content)
        assert (found["meta"], found["name"], found["versions"]) == ({"api-version": "1.1"}, "digit-sum", ["0.1.0"])
        (file,) = found["files"]
        assert (file["filename"], file["size"], file["yanked"]) == (package.wheel_filename, len(package.wheel), False)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", file["upload-time"])
        assert json.loads(page("/hub/ada/digit-sum/simple/", JSON).content)["projects"] == [{"name": "digit-sum"}]

    def test_a_yanked_release_is_listed_and_marked(self, ada):
        make_release(ada, visibility="PUBLIC")
        assert client_for(ada).delete(f"{HUB}/ada/digit-sum/@0.1.0").status_code == 204
        assert "data-yanked" in page("/hub/ada/digit-sum/simple/digit-sum/").content.decode()
        (file,) = json.loads(page("/hub/ada/digit-sum/simple/digit-sum/", JSON).content)["files"]
        assert file["yanked"]

    @pytest.mark.parametrize(
        ("asked", "status", "start", "end"),
        [
            ("bytes=0-3", 206, 0, 4),
            ("bytes=10-", 206, 10, None),
            ("bytes=-22", 206, -22, None),
            ("bytes=0-999999999", 206, 0, None),
            ("bytes=5-2", 200, 0, None),
            ("bytes=0-1,4-5", 200, 0, None),
            ("lines=1-2", 200, 0, None),
        ],
    )
    def test_a_wheel_can_be_had_in_ranges(self, ada, asked, status, start, end):
        package = build_package()
        make_release(ada, package, visibility="PUBLIC")
        answer = client_for().get(f"/hub/ada/digit-sum/packages/{package.wheel_filename}", headers={"Range": asked})
        assert (answer.status_code, answer["Accept-Ranges"]) == (status, "bytes")
        assert content_of(answer) == package.wheel[start:end]

    def test_a_range_behind_the_end_cannot_be_had(self, ada):
        package = build_package()
        make_release(ada, package, visibility="PUBLIC")
        path = f"/hub/ada/digit-sum/packages/{package.wheel_filename}"
        answer = client_for().get(path, headers={"Range": f"bytes={len(package.wheel)}-"})
        assert (answer.status_code, answer["Content-Range"]) == (416, f"bytes */{len(package.wheel)}")


class TestTokens:
    """The index of a private environment: its address holds what opens it."""

    @pytest.fixture
    def release(self, ada):
        return make_release(ada)

    def test_it_opens_one_package_for_reading_without_a_credential(self, ada, release):
        make_release(ada, build_package("lighthouse"))
        root = detail(ada)["simple_index_url"]
        listed = page(f"{root}digit-sum/")
        assert listed.status_code == 200 and listed["Cache-Control"] == "private, no-store"
        path = urlsplit(urljoin(f"{root}digit-sum/", f"../../packages/{release.wheel_filename}")).path
        assert content_of(client_for().get(path)) == build_package().wheel
        assert page(f"{root}lighthouse/").status_code == 404
        for method in ("post", "put", "patch", "delete"):
            assert getattr(client_for(), method)(urlsplit(root).path).status_code == 405

    def test_it_is_stored_hashed_and_new_each_time(self, ada, release):
        from controlplane.core.tenancy import acting_as_system
        from controlplane.hub.models import IndexToken

        first, second = (detail(ada)["simple_index_url"] for _ in range(2))
        assert first != second and page(first).status_code == page(second).status_code == 200
        with acting_as_system():
            stored = str(list(IndexToken.objects.values()))
        assert not any(urlsplit(url).path.split("/")[3] in stored for url in (first, second))

    def test_it_ends_after_an_hour(self, ada, release, shift_clock):
        from controlplane.core.tenancy import acting_as_system
        from controlplane.hub.models import IndexToken

        root = detail(ada)["simple_index_url"]
        shift_clock(timedelta(minutes=59))
        assert page(root).status_code == 200
        shift_clock(timedelta(minutes=2))
        assert page(root).status_code == 404
        detail(ada)
        with acting_as_system():
            assert IndexToken.objects.count() == 1

    def test_it_ends_with_its_key_its_membership_and_its_environment(self, ada):
        from controlplane.teams import access, services

        bob = make_member("bob")
        lead, member = make_shared_team(ada, bob, slug="lab")
        make_release(lead)
        theirs, mine = detail(member, "lab/digit-sum")["simple_index_url"], detail(lead, "lab/digit-sum")["simple_index_url"]
        services.remove_member(access.actor_for(ada.actor.user, team_id=lead.team_id), user_id=bob.actor.user.pk)
        assert (page(theirs).status_code, page(mine).status_code) == (404, 200)
        services.revoke_key(access.actor_for(ada.actor.user), access.key_by_text(ada.key).id)
        assert page(mine).status_code == 404

    def test_a_deleted_environment_has_no_index(self, ada, release):
        root = detail(ada)["simple_index_url"]
        client_for(ada).delete(f"{HUB}/ada/digit-sum")
        assert page(root).status_code == 404

    def test_nobody_else_gets_or_guesses_one(self, ada, release):
        assert client_for(make_member()).get(f"{HUB}/ada/digit-sum/@latest").status_code == 404
        assert page("/hub/-/guessed/simple/").status_code == 404
        assert page("/hub/ada/digit-sum/simple/").status_code == 404
        assert page(f"/hub/ada/digit-sum/packages/{release.wheel_filename}").status_code == 404

    def test_a_public_environment_needs_none(self, ada):
        make_release(ada, build_package("lighthouse"), visibility="PUBLIC")
        assert "/-/" not in detail(ada, "ada/lighthouse")["simple_index_url"]


@pytest.fixture
def public_index(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    """A package index as the public one is, holding the wheels below its folder."""
    folder = tmp_path / "public"
    (folder / "files").mkdir(parents=True)
    handler = partial(_Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/simple/", folder
        server.shutdown()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None: ...


def publish(folder: Path, name: str, version: str, says: str) -> None:
    """`name` on the public index; its module says where it is from."""
    wheel = make_wheel(
        folder / "files", name.replace("-", "_"), {f"{name.replace('-', '_')}.py": f"FROM = {says!r}\n"}, version=version
    )
    listed = folder / "simple" / name
    listed.mkdir(parents=True, exist_ok=True)
    with (listed / "index.html").open("a") as page_file:
        page_file.write(f'<a href="../../files/{wheel.name}">{wheel.name}</a>\n')


UV = [str(Path(sys.executable).with_name("uv")), "pip", "install", "--no-cache", "--python", sys.executable]
PIP_COMMAND = [sys.executable, "-m", "pip", "install", "--no-cache-dir", "--disable-pip-version-check", "--no-input"]
INSTALLERS = {"uv": UV, "pip": PIP_COMMAND}


def install(installer: str, target: Path, wanted: list[str], public: str, ours: str) -> None:
    command = [*INSTALLERS[installer], "--target", str(target), *wanted, "--index-url", public, "--extra-index-url", ours]
    environment = {"PATH": os.environ["PATH"], "HOME": str(target.parent), "UV_NO_CONFIG": "1", "PIP_CONFIG_FILE": os.devnull}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("installer", INSTALLERS)
class TestInstallers:
    def test_a_private_release_installs_and_its_dependencies_are_the_public_ones(
        self, installer, live_origin, settings, public_index, tmp_path
    ):
        """The owner publishes an environment under the name of a public package that another one of theirs needs."""
        settings.PUBLIC_ORIGIN = live_origin
        public, folder = public_index
        publish(folder, "lighthouse", "1.0", "the public index")
        publish(folder, "digit-sum", "0.0.1", "the public index")
        ada = make_member("ada")
        make_release(ada, build_package(requires="lighthouse>=0.1"))
        make_release(ada, build_package("lighthouse", "9.0.0", content="FROM = 'the hub'\n"), visibility="PUBLIC")
        target = tmp_path / "installed"
        install(installer, target, ["digit-sum==0.1.0"], public, detail(ada)["simple_index_url"])
        assert (target / "digit_sum" / "__init__.py").read_text() == "x = 1\n"
        assert "the public index" in (target / "lighthouse.py").read_text()

    def test_the_address_that_names_the_wheel_cannot_be_shadowed(self, installer, live_origin, settings, public_index, tmp_path):
        """A stranger publishes the environment's name on the public index, with a higher version."""
        settings.PUBLIC_ORIGIN = live_origin
        public, folder = public_index
        publish(folder, "digit-sum", "99.0", "a stranger")
        ada = make_member("ada")
        release = make_release(ada)
        target, found = tmp_path / "installed", detail(ada)
        wanted = f"digit-sum @ {found['wheel_url']}#sha256={release.wheel_sha256}"
        install(installer, target, [wanted], public, found["simple_index_url"])
        assert (target / "digit_sum" / "__init__.py").read_text() == "x = 1\n"


@pytest.mark.django_db(transaction=True)
def test_by_name_it_installs_with_what_it_stands_on_given_beside_it(live_origin, settings, public_index, tmp_path):
    """As the public client does: uv follows no address that a package of an index requires."""
    settings.PUBLIC_ORIGIN = live_origin
    public, folder = public_index
    publish(folder, "digit-sum", "99.0", "a stranger")
    ada = make_member("ada")
    line = requirement_of(make_release(ada, visibility="PUBLIC"))
    make_release(ada, build_package("sums", requires=line), visibility="PUBLIC")
    target, found = tmp_path / "installed", detail(ada, "ada/sums")
    install("uv", target, ["sums==0.1.0", *found["url_dependencies"]], public, found["simple_index_url"])
    assert (target / "sums" / "__init__.py").exists()
    assert (target / "digit_sum" / "__init__.py").read_text() == "x = 1\n"
