"""Where settings come from, and that nobody is sent elsewhere by default."""

import json
import stat

import pytest

from primecli.config import LOCAL_URL, Config
from primecli.output import CliError, ExitCode


def load(home, profile: str | None = None, **environ: str) -> Config:
    return Config.load(profile, {"HOME": str(home), **environ})


def write(home, name: str = "config.json", **stored: object) -> None:
    path = home / ".prime" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(stored))


def test_without_any_setting_it_points_at_this_machine(tmp_path):
    config = load(tmp_path)
    assert config.base_url == config.frontend_url == LOCAL_URL
    assert config.inference_url == f"{LOCAL_URL}/api/inference/v1"
    assert config.api_key == config.team_id == ""


def test_a_variable_beats_the_file(tmp_path):
    write(tmp_path, base_url="http://file", api_key="file")
    config = load(tmp_path, PRIME_API_KEY="variable")
    assert (config.base_url, config.api_key) == ("http://file", "variable")


@pytest.mark.parametrize("spelled", ["http://host/api/v1", "http://host/", "http://host"])
def test_the_api_path_is_ours_to_add(tmp_path, spelled):
    assert load(tmp_path, PRIME_API_BASE_URL=spelled).base_url == "http://host"


def test_the_older_variable_counts_too(tmp_path):
    assert load(tmp_path, PRIME_BASE_URL="http://old").base_url == "http://old"
    assert load(tmp_path, PRIME_BASE_URL="http://old", PRIME_API_BASE_URL="http://new").base_url == "http://new"


def test_what_the_public_client_wrote_as_a_default_is_no_choice(tmp_path):
    write(tmp_path, base_url="https://api.primeintellect.ai", frontend_url="https://app.primeintellect.ai")
    config = load(tmp_path)
    assert config.base_url == config.frontend_url == LOCAL_URL


def test_a_profile_stands_beside_the_file(tmp_path):
    write(tmp_path, base_url="http://file")
    write(tmp_path, "environments/lab.json", base_url="http://lab")
    assert load(tmp_path, "lab").base_url == "http://lab"
    assert load(tmp_path, PRIME_CONTEXT="lab").base_url == "http://lab"


def test_an_unknown_profile_is_named(tmp_path):
    with pytest.raises(CliError, match="nope") as refused:
        load(tmp_path, "nope")
    assert refused.value.exit_code == ExitCode.NOT_FOUND


def test_saving_keeps_what_others_wrote_and_lets_nobody_else_read(tmp_path):
    write(tmp_path, ssh_key_path="~/.ssh/id", team_id="c1")
    config = load(tmp_path).save(api_key="secret", team_id=None)
    assert json.loads(config.path.read_text()) == {"ssh_key_path": "~/.ssh/id", "api_key": "secret"}
    assert stat.S_IMODE(config.path.stat().st_mode) == 0o600
    assert config.api_key == "secret"


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_broken_file_is_named(tmp_path, text):
    path = tmp_path / ".prime" / "config.json"
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(CliError, match=r"config\.json"):
        load(tmp_path)
