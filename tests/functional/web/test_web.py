"""What is served beside the API: the single-page app, its files, and nothing that could run as ours."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client, override_settings

pytestmark = pytest.mark.django_db


@pytest.fixture
def built(tmp_path: Path):
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html><div id=app></div>")
    (tmp_path / "assets" / "app-Bx91_aQ2.js").write_text("1")
    (tmp_path / "favicon.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    with override_settings(FRONTEND_DIST=tmp_path):
        yield Client()


@pytest.mark.parametrize("path", ["/", "/runs", "/runs/cabc/anything", "/dashboard/tokens/challenge?code=ABC"])
def test_every_address_of_the_app_is_its_page(built: Client, path: str):
    answer = built.get(path)
    assert answer.status_code == 200 and b"id=app" in answer.content
    assert answer["Cache-Control"] == "no-cache" and "script-src 'self'" in answer["Content-Security-Policy"]


def policy_of(answer) -> dict[str, list[str]]:
    directives = (part.split() for part in answer["Content-Security-Policy"].split(";"))
    return {name: sources for name, *sources in directives}


def test_the_page_may_run_and_fetch_nothing_but_our_own_files(built: Client):
    policy = policy_of(built.get("/"))
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == ["'none'"]
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == policy["font-src"] == ["'self'"]
    assert not {source for sources in policy.values() for source in sources if "unsafe" in source or "*" in source}


def test_the_built_page_has_nothing_inline_and_all_its_files_are_kept_for_ever():
    client, page = Client(), (settings.FRONTEND_DIST / "index.html").read_text()
    assert re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", page) is None
    files = re.findall(r'(?:src|href)="(/[^"]+)"', page)
    assert len(files) >= 3
    for file in files:
        assert "immutable" in client.get(file)["Cache-Control"], file


def test_hashed_files_are_kept_for_ever_and_others_are_asked_for_again(built: Client):
    hashed, plain = built.get("/assets/app-Bx91_aQ2.js"), built.get("/favicon.svg")
    assert "immutable" in hashed["Cache-Control"] and hashed["Content-Type"].startswith("text/javascript")
    assert "immutable" not in plain["Cache-Control"] and plain["Content-Type"] == "image/svg+xml"


def test_the_api_is_never_the_page(built: Client):
    answer = built.get("/api/v1/no-such-thing")
    assert answer.status_code == 404 and answer["Content-Type"] == "application/json"
    assert built.get("/internal/v1/attempt").status_code == 404


@pytest.mark.parametrize("path", ["/../secret", "/assets/../../secret", "/%2e%2e/secret"])
def test_nothing_above_the_folder_is_served(built: Client, tmp_path: Path, path: str):
    (tmp_path.parent / "secret").write_text("a secret")
    assert b"a secret" not in built.get(path).content


def test_without_a_build_the_page_says_so(tmp_path: Path):
    with override_settings(FRONTEND_DIST=tmp_path / "missing"):
        answer = Client().get("/")
    assert answer.status_code == 503 and b"not built" in answer.content


def test_the_app_takes_no_posts(built: Client):
    assert built.post("/runs").status_code == 405
