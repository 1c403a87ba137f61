"""Arithmetic of the bound."""

from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.orchestrator.groups.staleness import StalenessRule


@settings(max_examples=40, deadline=None)
@given(bound=st.integers(0, 8), step=st.integers(1, 100), version=st.integers(0, 100))
def test_the_oldest_version_is_exactly_the_bound_away(bound, step, version):
    rule = StalenessRule(bound, 8)
    assert (rule.of(version, step) <= bound) == (version >= rule.oldest_version(step))


def test_a_bound_of_zero_dispatches_one_batch_and_waits_for_the_new_version():
    rule = StalenessRule(0, 8)
    assert rule.may_dispatch(version=0, next_step=1, outstanding=4)
    assert not rule.may_dispatch(version=0, next_step=1, outstanding=8)
    assert not rule.may_dispatch(version=0, next_step=2, outstanding=0)
    assert rule.may_dispatch(version=1, next_step=2, outstanding=0)


def test_rollouts_ahead_of_a_group_count_as_steps():
    rule = StalenessRule(2, 8)
    assert rule.may_dispatch(version=0, next_step=1, outstanding=23)
    assert not rule.may_dispatch(version=0, next_step=1, outstanding=24)
