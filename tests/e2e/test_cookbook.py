"""The quick start and every recipe of the cookbook, run as written: each command succeeds and prints what its page promises."""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fixtures.live_stack import Person
from tests.fixtures.places import REPOSITORY
from tests.fixtures.recipes import broken_promise, outputs, read_steps, script

DOCS = REPOSITORY / "docs"
RECIPES = [DOCS / "quick-start.md", *sorted(path for path in (DOCS / "cookbook").glob("*.md") if path.name != "README.md")]
RECIPE_DEADLINE_S = 600


@pytest.mark.heavy
@pytest.mark.timeout(900)
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda path: path.stem)
def test_a_recipe_does_what_it_says(recipe: Path, make_person: Callable[[], Person], tmp_path: Path) -> None:
    _copy_examples(tmp_path)
    steps = read_steps(recipe)
    done = subprocess.run(
        ["bash", "-c", script(steps)],
        cwd=tmp_path,
        env=make_person().environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=RECIPE_DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    for step, printed in zip(steps, outputs(done.stdout), strict=True):
        missing = broken_promise(step, printed)
        assert missing is None, f"the page promises {missing!r}; printed was:\n{printed}"


def _copy_examples(folder: Path) -> None:
    """A checkout's examples, without what earlier pushes left in them."""
    shutil.copytree(REPOSITORY / "examples", folder / "examples", ignore=shutil.ignore_patterns(".prime", "dist", "__pycache__"))
