"""How a recipe is read, and that a promise that is not kept is noticed."""

import subprocess
from pathlib import Path

import pytest

from tests.fixtures.recipes import Step, broken_promise, outputs, read_steps, script

RECIPE = """# A recipe

```toml title="sub/run.toml"
name = "x"
```

```sh
VALUE=7
echo "one   two"
```

```text
one two
```

```sh
echo "it is $VALUE"; cat sub/run.toml
```

```text
it is …
name = "x"
```

```json
{"not": "run"}
```
"""


@pytest.fixture
def recipe(tmp_path: Path) -> Path:
    path = tmp_path / "recipe.md"
    path.write_text(RECIPE)
    return path


def test_steps_share_one_shell_and_keep_their_promises(recipe: Path):
    steps = read_steps(recipe)
    done = subprocess.run(["bash", "-c", script(steps)], cwd=recipe.parent, capture_output=True, text=True, check=True)
    printed = outputs(done.stdout)
    assert len(printed) == len(steps) == 3
    assert [broken_promise(step, text) for step, text in zip(steps, printed, strict=True)] == [None, None, None]


@pytest.mark.parametrize(
    ("promised", "missing"),
    [(["one", "three"], "three"), (["two", "one"], "one"), (["o…e"], None), (["one.two"], "one.two"), (["one…four"], "one…four")],
)
def test_lines_must_appear_in_their_order(promised: list[str], missing: str | None):
    assert broken_promise(Step("", promised), "zero\none\ntwo\n") == missing


def test_a_script_stops_at_the_first_command_that_fails(tmp_path: Path):
    done = subprocess.run(["bash", "-c", script([Step("false\n"), Step("echo reached\n")])], cwd=tmp_path, capture_output=True)
    assert done.returncode == 1
    assert b"reached" not in done.stdout


def test_output_without_a_command_is_refused(tmp_path: Path):
    (tmp_path / "r.md").write_text("```text\nx\n```\n")
    with pytest.raises(ValueError, match="before a command"):
        read_steps(tmp_path / "r.md")
