"""Which versions may answer, and which go."""

import pytest

from trainer.orchestrator.engines.policies import Policy, PolicyTable


def version(number: int, **changes) -> Policy:
    return Policy(f"run.v{number}", "d" * 64, number, f"/v{number}", **changes)


def test_nothing_is_current_before_the_first_publication():
    with pytest.raises(LookupError):
        _ = PolicyTable().current


def test_a_version_goes_once_no_rollout_and_no_evaluation_needs_it():
    table, held = PolicyTable(), version(1)
    for policy in (version(0), held, version(2), version(3)):
        table.publish(policy)
    table.hold(held)
    assert [policy.version for policy in table.retire({2})] == [0]
    assert table.find("run.v0") is None and table.find("run.v1") == held
    table.release(held)
    assert [policy.version for policy in table.retire(set())] == [1, 2]
    assert table.current.version == 3


def test_a_teacher_answers_beside_the_policy_and_is_never_retired():
    table, teacher = PolicyTable(), Policy("other.v7", "e" * 64, path="/v7", keep=True)
    table.publish(version(0))
    table.add(teacher)
    table.add(teacher)
    table.publish(version(1))
    assert [policy.version for policy in table.retire(set())] == [0]
    assert (table.current.version, table.find("other.v7")) == (1, teacher)


def test_deployable_versions_and_base_models_are_forgotten_but_not_unloaded():
    table = PolicyTable()
    for policy in (Policy("tiny", "b" * 64, -1), version(1, keep=True), version(2)):
        table.publish(policy)
    assert table.retire(set()) == []
    assert table.find("run.v1") is None
