"""A run that stands still ends within a minute of its last deadline, and says whom it was waiting for.

The kind: something that never returns and that no deadline of its own ends, in rollouts, in evaluations, in scoring, in a call of
a machine, in a queue.
"""

from types import SimpleNamespace

import pytest

from trainer.contracts.events import Component, FailureCode
from trainer.orchestrator.attempt.heartbeat import Status
from trainer.orchestrator.environments.environment import held_up_by
from trainer.orchestrator.proxy.sessions import SessionBook
from trainer.orchestrator.watch import WATCH_S, Watch, silence_limits_s

ROLLOUT_S = 60.0
LIMITS_S = silence_limits_s(rollout_s=ROLLOUT_S, eval_rollout_s=20.0)


def watch(turn: Component, *, progress_s: float = 0.0, waiting_for: Component = Component.ENVIRONMENT) -> Watch:
    status = Status(phase="step 3: collecting rollouts", inflight=7, waiting_for=turn, since_s=0.0)
    return Watch(
        SimpleNamespace(status=status),
        SimpleNamespace(away_since_s=None),
        limits_s=LIMITS_S,
        progress_s=lambda: progress_s,
        waiting_for=lambda: waiting_for,
        inflight=lambda: status.inflight,
        notice=None,
    )


@pytest.mark.parametrize(
    "culprit", [Component.ENVIRONMENT, Component.JUDGE, Component.SANDBOX, Component.ENGINE], ids=lambda component: component
)
@pytest.mark.parametrize("turn", [Component.ENVIRONMENT, Component.EVAL], ids=lambda component: f"during-{component}")
def test_rollouts_that_never_end_fail_the_run_and_name_who_holds_them_up(turn: Component, culprit: Component):
    (ending,) = watch(turn, waiting_for=culprit).endings(LIMITS_S[turn])
    assert (ending.outcome, ending.code, ending.detail["component"]) == ("failed", FailureCode.STALLED, culprit)
    assert f"waits for the {culprit}" in ending.message and "step 3: collecting rollouts" in ending.message


@pytest.mark.parametrize("turn", [Component.TRAINER, Component.ENGINE, Component.SANDBOX, Component.ORCHESTRATOR])
def test_a_call_that_never_returns_fails_the_run_and_names_whose_turn_it_was(turn: Component):
    (ending,) = watch(turn, waiting_for=Component.ENVIRONMENT).endings(LIMITS_S[turn])
    assert (ending.outcome, ending.detail["component"]) == ("failed", turn)


def test_a_run_that_gets_no_place_is_paused_and_can_be_resumed():
    (ending,) = watch(Component.QUEUE).endings(LIMITS_S[Component.QUEUE])
    assert (ending.outcome, ending.code) == ("paused", FailureCode.STALLED)
    assert "queue" in ending.message and "Resume" in ending.message


@pytest.mark.parametrize("turn", list(LIMITS_S))
def test_nothing_ends_while_something_finishes(turn: Component):
    assert not list(watch(turn, progress_s=10.0).endings(LIMITS_S[turn] + 9.0))


def test_a_rollout_that_outlives_its_deadline_is_noticed_within_a_minute():
    assert 0 < LIMITS_S[Component.ENVIRONMENT] + WATCH_S - ROLLOUT_S < 60


def test_who_holds_rollouts_up_is_told_from_what_is_seen_outside_them():
    ready, absent = SimpleNamespace(is_ready=True), SimpleNamespace(is_ready=False)
    sessions = SessionBook()
    assert held_up_by([ready, absent], sessions, 1) is Component.SANDBOX
    assert held_up_by([ready], sessions, 1) is Component.ENVIRONMENT
    sessions.enter("digits", "trace", 0.0)
    assert held_up_by([ready], sessions, 1) is Component.ENGINE
    assert held_up_by([ready], sessions, 2) is Component.ENVIRONMENT
