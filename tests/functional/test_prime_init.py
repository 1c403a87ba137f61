"""What `prime init` writes passes its own tests where verifiers is installed."""

import json
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from primecli.app import app
from trainer.sandboxing.base_venv import BaseVenv

TESTS_DEADLINE_S = 60


@pytest.mark.parametrize("from_dataset", [False, True], ids=["template", "dataset"])
def test_a_new_environment_passes_its_own_tests(base_venv: BaseVenv, tmp_path: Path, from_dataset: bool):
    rows = tmp_path / "rows.jsonl"
    rows.write_text("".join(json.dumps({"question": f"{number}+1?", "answer": number + 1}) + "\n" for number in range(3)))
    words = ["init", "my-env", "--path", str(tmp_path / "my-env")] + (["--from-dataset", str(rows)] if from_dataset else [])
    made = CliRunner().invoke(app, words, env={"HOME": str(tmp_path)})
    assert made.exit_code == 0, made.output
    command = [str(base_venv.python), "-m", "unittest"]
    done = subprocess.run(command, cwd=tmp_path / "my-env", capture_output=True, text=True, timeout=TESTS_DEADLINE_S, check=False)
    assert done.returncode == 0 and "Ran 2 tests" in done.stderr, done.stderr
