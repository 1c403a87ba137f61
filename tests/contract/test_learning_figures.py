"""The learning curves and the comparison of experts on docs/algorithms.md: tables and drawings are those of the figures that lie
beside the page, and the figures hold what is claimed. `make curves` writes all of them.
"""

import json
from dataclasses import asdict

import pytest

from tests.numerics.curves.drawing import draw
from tests.numerics.curves.pages import FIGURES, PAGE, distilled_tokens, experts_table, learning_table, marked
from tests.numerics.curves.plans import GAIN_MIN, GOOD_SEEDS_MIN, PLANS, SEEDS

LEARNING = json.loads((FIGURES / "learning.json").read_text())
EXPERTS = json.loads((FIGURES / "experts.json").read_text())
CURVES = [(name, objective) for name, plan in LEARNING["plans"].items() for objective in plan["objectives"]]


def test_the_figures_are_of_the_plans_that_the_tests_carry_out():
    plans = [asdict(plan) for plan in PLANS]
    told = [{"name": name, **plan["settings"]} for name, plan in LEARNING["plans"].items()]
    assert told == json.loads(json.dumps(plans))
    assert all(list(plan["objectives"]) == plan["settings"]["objectives"] for plan in LEARNING["plans"].values())


@pytest.mark.parametrize(("name", "objective"), CURVES)
def test_four_of_five_seeds_gain(name: str, objective: str):
    plan = LEARNING["plans"][name]
    shown = plan["objectives"][objective]
    assert [len(line) for line in shown["steps"]] == [plan["settings"]["steps"]] * SEEDS
    gains = [late - early for early, late in zip(shown["before"], shown["after"], strict=True)]
    assert len(gains) == SEEDS and sum(gain >= GAIN_MIN for gain in gains) >= GOOD_SEEDS_MIN


def test_the_page_says_what_the_figures_say():
    page = PAGE.read_text()
    assert marked("learning", learning_table(LEARNING)) in page
    assert marked("experts", experts_table(EXPERTS)) in page


@pytest.mark.parametrize("name", LEARNING["plans"])
def test_each_curve_is_drawn_from_its_figures_and_shown(name: str):
    assert (FIGURES / f"learning-{name}.svg").read_text() == draw(name, LEARNING["plans"][name])
    assert f"(figures/learning-{name}.svg)" in PAGE.read_text()


def test_both_ways_had_the_same_tokens():
    assert len(EXPERTS["seeds"]) == SEEDS
    for one in EXPERTS["seeds"]:
        assert distilled_tokens(one) == pytest.approx(one["joint_tokens"]["trained"], rel=0.02)
        assert one["distillation_tokens"]["trained"] == pytest.approx(one["joint_early_tokens"]["trained"], rel=0.02)
