"""What docs/environments.md says of the library's own examples is what the last trial of them found."""

import json

import pytest

from tests.verifiers_examples.report import BEGIN, END, FIGURES, PAGE, table
from tests.verifiers_examples.trial import obstacle_of


def test_the_table_is_that_of_the_trial():
    written = PAGE.read_text().split(BEGIN)[1].split(END)[0]
    assert written == table(json.loads(FIGURES.read_text()))


def test_every_example_that_does_not_run_has_a_reason_and_the_count_is_right():
    report = json.loads(FIGURES.read_text())
    rows = report["packages"]
    assert report["state"] == f"{sum(row['runs'] for row in rows)} of {len(rows)}"
    assert [row["name"] for row in rows if not row["said"] or row["runs"] == bool(row["obstacle"])] == []


@pytest.mark.parametrize(
    ("said", "obstacle"),
    [
        ("task 0: image: asks for the container image 'x': a sandbox has no container", "needs a container"),
        ("uv script a.py: it asks for Python >=3.12; the runner has 3.11.2", "needs a newer Python"),
        ("x does not load: ConnectError: Name or service not known", "needs a network"),
        ("x does not load: ConnectionError: Couldn't reach 'openai/gsm8k' on the Hub (load_dataset)", "downloads a data set"),
        ("the rollout of task 0 failed: KeyError: 'k'", "fails on what a canned model says"),
        ("something new", "another reason"),
    ],
)
def test_an_obstacle_is_named_by_the_platforms_words(said, obstacle):
    assert obstacle_of(said, None) == obstacle


def test_a_need_that_the_check_recorded_comes_first():
    assert obstacle_of("all failed", {"compatibility": {"needs": {"container": True, "network": False}}}) == "needs a container"
