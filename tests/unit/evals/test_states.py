"""Which status of an evaluation may follow which."""

from controlplane.evals.models import EvalStatus
from controlplane.evals.states import TERMINAL, TRANSITIONS, is_terminal, may_follow


def test_every_status_has_a_row_and_the_ends_are_ends():
    assert set(TRANSITIONS) == set(EvalStatus)
    assert all(TRANSITIONS[status] == frozenset() for status in TERMINAL)


def test_a_lost_holder_sends_an_evaluation_back_to_the_start():
    assert may_follow(EvalStatus.RUNNING, EvalStatus.PENDING)
    assert not is_terminal(EvalStatus.PENDING)
