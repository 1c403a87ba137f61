"""Environments of several agents through the whole stack: a frozen user who is paid for and not trained, and a game of two sides.

Nothing needs to be learnt here: each agent's part reaches the record, the bill and the trainer as it should.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.learner import Learner
from tests.fixtures.live_stack import Person

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1200)]

STEPS = 2


def rollouts_of(learner: Learner, run_id: str) -> list[dict[str, Any]]:
    """Those of the first step, whole."""
    groups = learner.get(f"/rft/runs/{run_id}/groups", step=1)["groups"]
    return [learner.get(f"/rft/runs/{run_id}/rollouts/{row['id']}") for group in groups for row in group["rollouts"]]


def written(trace: dict[str, Any]) -> int:
    return sum(call["output_tokens"] for call in trace["calls"])


def test_a_frozen_user_is_evaluated_with_paid_for_and_never_trained(make_person: Callable[[], Person], tmp_path: Path) -> None:
    learner = Learner(make_person(), "opening_hours", tmp_path)
    found = learner.evaluate("-n", "4", "--max-tokens", "16", "--seat", "user=tiny")
    assert found["status"] == "COMPLETED" and found["total_samples"] == 4, found
    run_id = learner.train(STEPS)
    assert len(learner.curve(run_id, f"reward_part/{learner.environment}/brief")) == STEPS
    rollouts = rollouts_of(learner, run_id)
    played = [{trace["agent"]: trace for trace in rollout["traces"]} for rollout in rollouts if rollout["rollout"]["trained"]]
    assert played and all(set(traces) == {"assistant", "user"} for traces in played)
    for traces in played:
        assert not traces["user"]["trainable"] and traces["user"]["branches"] == []
        assert {call["engine_name"] for call in traces["user"]["calls"]} == {"tiny"}
        assert all(branch["trained"] for branch in traces["assistant"]["branches"])
    bill = {line["meter"]: line["quantity"] for line in learner.get(f"/billing/runs/{run_id}/usage")["meters"]}
    spoken = sum(written(traces["user"]) + written(traces["assistant"]) for traces in played)
    assert 0 < sum(written(traces["user"]) for traces in played) < spoken <= bill["rollout_output_tokens"]


def test_both_sides_of_a_game_learn_against_baselines_of_their_own(make_person: Callable[[], Person], tmp_path: Path) -> None:
    learner = Learner(make_person(), "nim", tmp_path)
    run_id = learner.train(STEPS)
    assert len(learner.curve(run_id, "loss")) == STEPS
    rollouts = [rollout for rollout in rollouts_of(learner, run_id) if rollout["rollout"]["trained"]]
    agents = {trace["agent"] for rollout in rollouts for trace in rollout["traces"]}
    assert {"first"} <= agents <= {"first", "second"}
    trained = [branch["trained"] for rollout in rollouts for trace in rollout["traces"] for branch in trace["branches"]]
    assert trained and all(trained)
