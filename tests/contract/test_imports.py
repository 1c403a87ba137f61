"""Who may import whom: the contracts of pyproject.toml, and how light the light packages are."""

import json
import subprocess
import sys

from tests.fixtures.places import REPOSITORY

LIGHT = {"trainer", "pydantic", "pydantic_core", "annotated_types", "typing_extensions", "typing_inspection"}
HEAVY = {"django", "rest_framework", "celery", "torch", "transformers", "numpy", "psycopg", "stripe"}
_PROBE = "import sys, json; before = set(sys.modules); import {}; print(json.dumps(sorted(set(sys.modules) - before)))"


def test_the_import_contracts_hold():
    done = subprocess.run(
        [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()", "--no-cache"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_contracts_load_nothing_but_pydantic():
    names = ("internal", "training", "generation", "rollouts", "samples", "adapters", "catalogue", "toml_config")
    loaded = _loaded_by(", ".join(f"trainer.contracts.{name}" for name in names))
    foreign = {name for name in loaded if name not in sys.stdlib_module_names and not name.startswith("_")}
    assert foreign <= LIGHT


def test_the_command_line_is_light():
    assert _loaded_by("primecli.app") & HEAVY == set()


def _loaded_by(imports: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", _PROBE.format(imports)], cwd=REPOSITORY, capture_output=True, text=True, check=False,
        env={"PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'platform'}", "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {name.partition(".")[0] for name in json.loads(done.stdout)}
