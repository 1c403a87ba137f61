"""The example workflow's own steps, run one after the other as its server would, end with a comment."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from tests.fixtures.live_stack import Person
from tests.fixtures.places import REPOSITORY

WORKFLOW = REPOSITORY / "examples" / "ci" / "github.yml"
LIMITS = {"ENVIRONMENT": "digit-sum", "MIN_MEAN": "0.01", "MODEL": "tiny"}


@pytest.mark.heavy
@pytest.mark.timeout(600)
def test_a_tag_pushes_evaluates_gates_and_comments(make_person: Callable[[], Person], tmp_path: Path):
    ignored = shutil.ignore_patterns(".prime", "dist", "__pycache__")
    shutil.copytree(REPOSITORY / "examples" / "environments" / "digit_sum", tmp_path / "repository", ignore=ignored)
    variables = tmp_path / "github-env"
    variables.touch()
    person = make_person()
    for line in own_steps():
        given = dict(entry.split("=", 1) for entry in variables.read_text().splitlines())
        environment = person.environment() | LIMITS | given | {"GITHUB_ENV": str(variables)}
        done = subprocess.run(
            ["bash", "-e", "-c", line.replace("-n 50", "-n 4")],
            cwd=tmp_path / "repository",
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, (line, done.stdout, done.stderr)
    assert (tmp_path / "repository" / "comment.md").read_text().startswith("### ✅ Evaluation passed")


def own_steps() -> list[str]:
    """Those that need no server of GitHub: all that call `prime`."""
    (job,) = yaml.safe_load(WORKFLOW.read_text())["jobs"].values()
    return [step["run"] for step in job["steps"] if "prime " in step.get("run", "")]
