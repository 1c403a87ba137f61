"""`prime secret`, `prime env secret` and `prime var`: what they send, and that a value is never printed."""

import base64

import pytest

AT = "2026-11-30T10:00:00Z"
SECRET = {"id": "csecret", "name": "API_KEY", "description": "", "environmentsCount": 1, "updatedAt": AT, "lastUsedAt": None}
VARIABLE = {"id": "cvar", "name": "LEVEL", "value": "hard", "description": "", "updatedAt": AT}
HUB = "/api/v1/environmentshub"
VALUE = "sk-live-0123456789"


@pytest.fixture
def hub(server):
    server.routes |= {
        ("GET", f"{HUB}/ada/sums/@latest"): {"data": {"id": "cenv"}},
        ("GET", "/api/v1/secrets/"): {"data": [SECRET], "total_count": 1},
        ("POST", "/api/v1/secrets/"): {"data": SECRET},
        ("PATCH", "/api/v1/secrets/csecret"): {"data": SECRET},
        ("POST", f"{HUB}/cenv/secrets"): {"data": SECRET},
        ("POST", f"{HUB}/cenv/secrets/link/csecret"): {"data": {"secretName": "API_KEY"}},
        ("POST", f"{HUB}/cenv/variables"): {"data": VARIABLE},
        ("GET", f"{HUB}/cenv/variables"): {"data": [VARIABLE]},
        ("PATCH", f"{HUB}/cenv/variables/cvar"): {"data": VARIABLE},
    }
    return server


def test_a_secret_is_sent_and_never_printed(hub):
    done = hub.run("secret", "create", "-n", "API_KEY", "-v", VALUE, "-d", "for the judge")
    assert done.exit_code == 0, done.output
    assert hub.body() == {"name": "API_KEY", "value": VALUE, "description": "for the judge", "isFile": False}
    assert VALUE not in done.output + hub.run("secret", "list").output


def test_a_value_is_read_from_a_file_without_its_last_newline_and_a_file_whole(hub, tmp_path):
    source = tmp_path / "key"
    source.write_text(f"{VALUE}\n")
    hub.run("secret", "create", "-n", "API_KEY", "--from", str(source))
    assert hub.body()["value"] == VALUE
    hub.run("secret", "create", "-n", "API_KEY", "--from", str(source), "--file")
    assert base64.b64decode(hub.body()["value"]) == f"{VALUE}\n".encode()


def test_a_short_value_is_said_to_be_unmasked(hub):
    assert "not masked" in hub.run("secret", "create", "-n", "API_KEY", "-v", "short").stderr
    assert "not masked" not in hub.run("secret", "create", "-n", "API_KEY", "-v", VALUE).stderr


def test_an_update_sends_what_was_given_and_refuses_to_send_nothing(hub):
    hub.run("secret", "update", "csecret", "-d", "new")
    assert hub.body() == {"description": "new"}
    assert hub.run("secret", "update", "csecret").exit_code == 2


def test_an_environments_secrets_and_links_go_to_its_id(hub):
    assert hub.run("env", "secret", "create", "ada/sums", "-n", "API_KEY", "-v", VALUE).exit_code == 0
    assert hub.body()["value"] == VALUE
    linked = hub.run("env", "secret", "link", "csecret", "ada/sums")
    assert linked.exit_code == 0 and "linked API_KEY to ada/sums" in linked.stderr


@pytest.mark.parametrize("words", [("var",), ("env", "var")])
def test_variables_are_set_and_shown_under_both_spellings(hub, words):
    assert hub.run(*words, "create", "ada/sums", "-n", "LEVEL", "-v", "hard").exit_code == 0
    assert hub.body() == {"name": "LEVEL", "value": "hard", "description": None}
    assert "hard" in hub.run(*words, "list", "ada/sums").stdout
    assert hub.run(*words, "update", "cvar", "ada/sums", "-v", "easy").exit_code == 0 and hub.body() == {"value": "easy"}
