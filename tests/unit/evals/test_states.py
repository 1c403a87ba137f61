"""Which status of an evaluation may follow which."""

from controlplane.evals.models import EvalStatus
from controlplane.evals.states import TERMINAL, TRANSITIONS, is_terminal, may_follow


def test_every_status_has_a_row_and_from_an_end_one_can_only_go_on():
    assert set(TRANSITIONS) == set(EvalStatus)
    assert TRANSITIONS[EvalStatus.COMPLETED] == frozenset()
    assert all(TRANSITIONS[status] == {EvalStatus.PENDING} for status in TERMINAL - {EvalStatus.COMPLETED})


def test_a_lost_holder_sends_an_evaluation_back_to_the_start():
    assert may_follow(EvalStatus.RUNNING, EvalStatus.PENDING)
    assert not is_terminal(EvalStatus.PENDING)
