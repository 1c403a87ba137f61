"""When an environment counts as failing, and what its owner reads."""

from trainer.orchestrator.groups.failure_window import FailureWindow
from trainer.orchestrator.rollouts.rollout import RolloutOutcome

OK, BAD = RolloutOutcome("ok", 1.0), RolloutOutcome("failed", error="KeyError: 'x' at env/__init__.py:3")


def test_half_of_a_full_window_is_allowed_and_one_more_is_not():
    window = FailureWindow(size=10, fraction=0.5)
    for outcome in [OK, BAD] * 5:
        window.add(outcome)
    assert window.verdict() is None
    window.add(BAD)
    ending = window.verdict()
    assert (ending.outcome, ending.code) == ("paused", "environment_failing")
    assert "6 of the last 10" in ending.message and "env/__init__.py:3" in ending.message


def test_a_window_that_is_not_full_says_nothing():
    window = FailureWindow(size=10, fraction=0.5)
    for _ in range(9):
        window.add(BAD)
    assert window.verdict() is None


def test_what_the_pool_broke_or_we_cancelled_says_nothing_about_the_environment():
    window = FailureWindow(size=8, fraction=0.5)
    for state in ("infrastructure", "cancelled", "stale"):
        for _ in range(20):
            window.add(RolloutOutcome(state))
    assert window.verdict() is None


def test_what_the_owners_filters_found_cannot_be_trained_on_either():
    window = FailureWindow(size=8, fraction=0.5)
    for _ in range(8):
        window.add(RolloutOutcome("filtered", 1.0, error="repetition: 512 tokens in a row were certain"))
    assert "repetition" in window.verdict().message


def test_too_many_failures_of_ours_pause_the_run_and_blame_nobody_else():
    window, ours = FailureWindow(size=8, fraction=0.5), RolloutOutcome("infrastructure", error="the session was not reset")
    for _ in range(31):
        window.add(ours)
    assert window.verdict() is None, "one lost batch is no reason to pause"
    window.add(ours)
    ending = window.verdict()
    assert (ending.outcome, ending.code) == ("paused", "rollouts_lost")
    assert "32 of the last 32" in ending.message and "cost nothing" in ending.message
