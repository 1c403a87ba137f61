"""The outcome rule: the runner's claim counts only as far as the proxy's record supports it."""

import pytest

from tests.factories.rollouts import make_call
from trainer.contracts.rollouts import RolloutEnd, TenantError, TraceReport
from trainer.orchestrator.proxy.sessions import SessionBook
from trainer.orchestrator.rollouts.verdicts import judge


def book(*calls, infrastructure=None, live=0) -> SessionBook:
    sessions = SessionBook()
    session = sessions.enter("e", "t", 0.0)
    session.calls, session.infrastructure, session.live = list(calls), infrastructure, live
    return sessions


def end(state="ok", reward=1.0, fault="none", **changes) -> RolloutEnd:
    report = TraceReport(trace_id="t", state=state if state in ("ok", "failed") else "incomplete", reward=reward)
    return RolloutEnd(state=state, traces=[report], fault=fault, **changes)


CALL = make_call(engine_name="run.v1")


def test_a_good_rollout_keeps_its_reward_and_claims_its_calls_once():
    sessions = book(CALL)
    outcome = judge(end(), sessions, environment="e", engine_name="run.v1")
    assert (outcome.state, outcome.reward, outcome.calls) == ("ok", 1.0, [CALL])
    assert judge(end(), sessions, environment="e", engine_name="run.v1").state == "failed"


def test_a_reward_without_recorded_calls_is_nothing_to_train_on():
    outcome = judge(end(), SessionBook(), environment="e", engine_name="run.v1")
    assert outcome.state == "failed"
    assert "nothing to train on" in outcome.error


def test_calls_of_another_version_are_not_this_rollouts():
    outcome = judge(end(), book(make_call(engine_name="run.v0")), environment="e", engine_name="run.v1")
    assert outcome.state == "failed"
    assert "run.v0" in outcome.error


def test_an_engine_failure_that_the_proxy_saw_is_nobodys_reward():
    outcome = judge(end(), book(CALL, infrastructure="503"), environment="e", engine_name="run.v1")
    assert (outcome.state, outcome.reward) == ("infrastructure", None)


@pytest.mark.parametrize(
    ("away", "live", "state"), [(False, 0, "failed"), (True, 0, "infrastructure"), (False, 1, "infrastructure")]
)
def test_a_claim_of_infrastructure_needs_evidence(away, live, state):
    claim = end("failed", None, "infrastructure")
    assert judge(claim, book(CALL, live=live), environment="e", engine_name="run.v1", engine_was_away=away).state == state


def test_a_failure_names_the_place_in_the_tenants_code():
    error = TenantError(type="KeyError", message="'x'", module="env/__init__.py", line=21, function="score")
    outcome = judge(end("failed", None, errors=[error]), book(CALL), environment="e", engine_name="run.v1")
    assert outcome.error == "KeyError: 'x' at env/__init__.py:21 in score"


def test_an_evaluation_may_use_the_chat_route_alone():
    chat = make_call((), (), engine_name="tiny", route="chat", input_tokens=5, output_tokens=2)
    assert judge(end(), book(chat), environment="e", engine_name="tiny", needs_tokens=False).state == "ok"


def test_where_nobody_is_trained_an_evaluation_counts_whom_the_policy_played_and_a_run_learns_from_none():
    played, foreign = make_call(engine_name="tiny"), make_call((), (), engine_name="caller.v9", route="chat", seat="user")
    claims = [
        TraceReport(trace_id=name, agent=name, trainable=False, state="ok", reward=reward)
        for name, reward in (("user", 7.0), ("silent", 9.0), ("judge", 0.5))
    ]

    def told(*, heard=(("user", foreign), ("judge", played)), **options):
        sessions = SessionBook()
        for name, call in heard:
            session = sessions.enter("e", name, 0.0)
            session.calls, session.live = [call], 0
        return judge(RolloutEnd(state="ok", traces=claims), sessions, environment="e", engine_name="tiny", **options)

    outcome = told(needs_tokens=False)
    assert (outcome.state, outcome.reward) == ("ok", 0.5)
    assert (told().state, told().error) == ("failed", "the environment returned no trainable trace")
    unasked = told(heard=[("user", foreign)], needs_tokens=False)
    assert (unasked.state, unasked.error) == ("failed", "the environment returned no trace in which the policy spoke")


def test_a_trace_in_which_another_model_spoke_is_no_learner_whatever_the_runner_says():
    sessions = book(CALL)
    user = make_call((), (), engine_name="caller.v9", route="chat", seat="user")
    other = sessions.enter("e", "u", 0.0)
    other.calls, other.live = [user], 0
    claims = [TraceReport(trace_id=name, state="ok", reward=reward) for name, reward in (("t", 1.0), ("u", -5.0))]
    outcome = judge(RolloutEnd(state="ok", traces=claims), sessions, environment="e", engine_name="run.v1")
    assert (outcome.state, outcome.reward) == ("ok", 1.0)
    assert [trace.report.trainable for trace in outcome.traces] == [True, False]
