"""Which state may follow which: the table is whole, terminal states end, and every state is reachable from the start."""

import pytest

from controlplane.runs.states import LEASED_STATES, TRANSITIONS, IllegalTransition, check_transition, is_terminal
from trainer.contracts.events import TERMINAL_STATES, RunState


def test_every_state_has_a_row():
    assert set(TRANSITIONS) == set(RunState)


def test_nothing_leaves_completed_and_only_a_restart_leaves_the_other_ends():
    assert TRANSITIONS[RunState.COMPLETED] == frozenset()
    assert {TRANSITIONS[state] for state in TERMINAL_STATES - {RunState.COMPLETED}} == {frozenset({RunState.QUEUED})}


def test_every_state_is_reachable_from_queued():
    seen, frontier = set(), {RunState.QUEUED}
    while frontier:
        seen |= frontier
        frontier = {after for state in frontier for after in TRANSITIONS[state]} - seen
    assert seen == set(RunState)


def test_a_run_that_waits_never_claims_to_work():
    """Work begins with a lease, so the way from a waiting state to a working one leads through PENDING."""
    for waiting in (RunState.QUEUED, RunState.PAUSED, *TERMINAL_STATES):
        assert not TRANSITIONS[waiting] & (LEASED_STATES - {RunState.PENDING})


def test_every_leased_state_can_lose_its_holder():
    for state in LEASED_STATES:
        assert {RunState.QUEUED, RunState.FAILED, RunState.STOPPED} <= TRANSITIONS[state]


def test_an_illegal_transition_is_refused():
    with pytest.raises(IllegalTransition, match="COMPLETED -> RUNNING"):
        check_transition(RunState.COMPLETED, RunState.RUNNING)


def test_terminal_is_what_the_contracts_call_terminal():
    assert {state for state in RunState if is_terminal(state)} == set(TERMINAL_STATES)
