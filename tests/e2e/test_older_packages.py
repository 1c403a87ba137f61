"""A package of the older interface through the whole stack: pushed, checked, evaluated, and trained on for two steps."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fixtures.learner import Learner
from tests.fixtures.live_stack import Person

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(600)]


def test_an_older_package_is_checked_evaluated_and_trained(make_person: Callable[[], Person], tmp_path: Path) -> None:
    learner = Learner(make_person(), "digit_min", tmp_path)
    verdict = learner.prime("env", "status", learner.environment)["data"]["verdict"]
    assert verdict["compatibility"]["interface"] == "load_environment"
    assert verdict["ok"] and verdict["tasks_count"] == 2_000
    found = learner.evaluate("-n", "8", "--max-tokens", "8")
    assert found["total_samples"] == 8 and 0.0 < found["avg_score"] < 1.25, found
    run_id = learner.train(2)
    parts = [f"reward_part/{learner.environment}/{part}" for part in ("is_smaller", "ends_in_digit")]
    assert all(len(learner.curve(run_id, part)) == 2 for part in parts)
    assert max(learner.curve(run_id, "mismatch_kl")[:1]) < 1e-4, "the trainer computes what the engine sampled"
    assert sum(sample["trained"] for sample in learner.samples(run_id, 2)) == 64
