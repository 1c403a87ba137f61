"""The example environments of several turns, through the whole stack: pushed, checked, evaluated and trained on."""

from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import pytest

from tests.fixtures.learner import Learner
from tests.fixtures.live_stack import Person

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1200)]


def rise(curve: list[float]) -> float:
    return fmean(curve[-5:]) - fmean(curve[:5])


def test_calling_the_right_tool_is_learnt(make_person: Callable[[], Person], tmp_path: Path) -> None:
    learner = Learner(make_person(), "arithmetic_tools", tmp_path)
    before = learner.evaluate("-n", "32", "--max-tokens", "48")
    assert 0.3 < before["avg_score"] < 1.0, before
    run_id = learner.train(24)
    right = learner.curve(run_id, f"reward_part/{learner.environment}/right_answer")
    assert rise(right) > 0.3 and fmean(right[-5:]) > 0.7, right
    assert set(learner.curve(run_id, "broken_prefixes")) == {0.0}
    assert max(learner.curve(run_id, "turns_mean")) <= 3
    assert max(learner.curve(run_id, "mismatch_kl")[:1]) < 1e-4
    assert any(sample["turns"] == 2 and sample["trained"] for sample in learner.samples(run_id, 1))


def test_the_form_of_a_guess_is_learnt_over_several_turns(make_person: Callable[[], Person], tmp_path: Path) -> None:
    learner = Learner(make_person(), "word_guess", tmp_path)
    before = learner.evaluate("-n", "16", "--max-tokens", "12")
    assert before["avg_score"] < 0.5, before
    run_id = learner.train(12)
    assert set(learner.curve(run_id, "turns_mean")) == {4.0}
    assert set(learner.curve(run_id, "broken_prefixes")) == {0.0}
    well_formed = learner.curve(run_id, f"reward_part/{learner.environment}/well_formed")
    assert rise(well_formed) > 0.05, well_formed
