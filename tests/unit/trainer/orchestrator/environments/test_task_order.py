"""Tasks in an order that a restart continues."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.orchestrator.environments.task_order import TaskOrder


@settings(max_examples=40, deadline=None)
@given(count=st.integers(1, 50), seed=st.integers(0, 5))
def test_each_epoch_visits_every_task_once_in_its_own_order(count, seed):
    order = TaskOrder(seed=seed, environment="e", tasks_count=count)
    for epoch in range(2):
        assert sorted(order.index_at(epoch * count + offset) for offset in range(count)) == list(range(count))


def test_a_position_answers_the_same_task_after_a_restart():
    first, second = (TaskOrder(seed=1, environment="e", tasks_count=30) for _ in range(2))
    assert [first.index_at(position) for position in range(70)][45:] == [second.index_at(position) for position in range(45, 70)]


def test_a_taskset_without_an_end_is_read_in_its_own_order():
    order = TaskOrder(seed=1, environment="e", tasks_count=None)
    assert [order.index_at(position) for position in (0, 1, 10**9)] == [0, 1, 10**9]


def test_no_tasks_is_an_error_that_names_the_environment():
    with pytest.raises(ValueError, match="digits"):
        TaskOrder(seed=1, environment="digits", tasks_count=0)
