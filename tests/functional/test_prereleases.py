"""Case 3: a dependency of a dependency is a pre-release. One setting of one pyproject.toml holds for the local install, for
hosted evaluations and for training; what a check makes of it is in test_releases.py."""

import subprocess
import sys

import pytest

from controlplane.core.tenancy import acting_as_system, acting_for
from controlplane.evals.attempts import EvalSubject
from controlplane.evals.request import HostedRequest
from controlplane.evals.services import start_hosted
from controlplane.runs.attempts import RunSubject
from controlplane.runs.models import Run
from primecli.commands.install import _install
from primecli.output import CliError
from primecli.packaging import build_wheel, read_project
from tests.factories.packages import build_package
from tests.factories.releases import make_release
from tests.factories.runs import fresh, fund, lease_evaluation, lease_run, make_pool
from tests.factories.teams import client_for, make_member
from tests.factories.wheels import make_wheel
from trainer.contracts.packages import allows_prereleases
from trainer.sandboxing.uv import find_uv

SETTING = '[tool.uv]\nprerelease = "allow"\n'
PYPROJECT = """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "digit-sum"
version = "0.1.0"
dependencies = ["word-count-middle"]
"""
both = pytest.mark.parametrize(("tool", "allowed"), [(SETTING, True), ("", False)])


@pytest.mark.parametrize("text", ["", "[tool]\nuv = 3\n", '[tool.uv]\nprerelease = "explicit"\n', "[tool"])
def test_nothing_but_the_setting_allows_them(text):
    assert allows_prereleases(SETTING) and not allows_prereleases(text)


@both
def test_the_local_install_honours_it(tmp_path, monkeypatch, tool, allowed):
    for version in ("2.0", "2.1.dev5"):
        (tmp_path / "index").mkdir(exist_ok=True)
        make_wheel(tmp_path / "index", "extra_words", {"extra_words.py": ""}, version=version)
    make_wheel(tmp_path / "index", "word_count_middle", {"word_count_middle.py": ""}, ["extra-words>2.0"])
    monkeypatch.setenv("UV_PRERELEASE", "disallow")
    monkeypatch.setenv("UV_NO_INDEX", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path / "index"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(find_uv().parent), prepend=":")
    (tmp_path / "project" / "digit_sum").mkdir(parents=True)
    (tmp_path / "project" / "digit_sum" / "__init__.py").write_text("")
    (tmp_path / "project" / "pyproject.toml").write_text(PYPROJECT + tool)
    project = read_project(tmp_path / "project")
    wheel = build_wheel(project).path
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([str(find_uv()), "venv", "--offline", "--python", sys.executable, str(tmp_path / "venv")], check=True)
    if not allowed:
        with pytest.raises(CliError, match="pre-release"):
            _install(python, wheel, allows_prereleases=project.allows_prereleases)
        return
    _install(python, wheel, allows_prereleases=project.allows_prereleases)
    found = subprocess.run([python, "-c", "import importlib.metadata as m; print(m.version('extra-words'))"], capture_output=True)
    assert found.stdout.strip() == b"2.1.dev5"


@both
@pytest.mark.django_db
def test_hosted_evaluation_and_training_are_told_of_it(tool, allowed):
    pool, ada = make_pool(), make_member("ada")
    fund(ada)
    make_release(ada, build_package(tool=tool))
    client = client_for(ada)
    assert client.get("/api/v1/environmentshub/ada/digit-sum/@latest").json()["data"]["allows_prereleases"] is allowed
    request = HostedRequest.model_validate({"environment_ids": ["ada/digit-sum"], "inference_model": "tiny"})
    with acting_for(ada.team_id):
        evaluation = start_hosted(actor=ada.actor, request=request)[0]
    run = client.post("/api/v1/rft/runs", {"model": {"name": "tiny"}, "environments": [{"id": "ada/digit-sum"}]})
    assert run.status_code in (200, 201), run.content
    leased = lease_evaluation(pool), lease_run(pool)
    with acting_as_system():
        subjects = (EvalSubject(), fresh(evaluation)), (RunSubject(), Run.objects.get())
        specs = [subject.attempt_spec(row, granted.lease) for (subject, row), granted in zip(subjects, leased, strict=True)]
    assert [spec.releases[0].allows_prereleases for spec in specs] == [allowed, allowed]
