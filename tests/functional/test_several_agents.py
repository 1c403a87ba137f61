"""Environments of several agents in the real runner: who plays whom, who is rewarded for what, and who is never trained."""

import asyncio

import pytest

from tests.factories.model_socket import FakeEngine
from tests.fixtures.runner import running
from trainer.contracts.rollouts import SeatModel
from trainer.sandboxing.runners import EnvironmentBroken

pytestmark = pytest.mark.timeout(300)

CALLER = SeatModel(model="caller.v9", temperature=0.3, max_tokens=40)
ROOM = {"max_tokens": 40}


def scripted(*replies: str) -> FakeEngine:
    left = iter(replies)
    return FakeEngine(reply=lambda prompt: next(left))


async def test_the_librarys_user_is_another_model_and_never_trained(make_release):
    release = await asyncio.to_thread(make_release, "opening_hours")
    engine = scripted("When do you close?", "What shop?", "The one I asked for.", "closed", "###DONE###")
    async with running(release, engine, seats={"user": CALLER}) as environment:
        end = await environment.play(sampling=ROOM)
    assert end.state == "ok", end
    traces = {trace.agent: trace for trace in end.traces}
    assert {name: trace.trainable for name, trace in traces.items()} == {"assistant": True, "user": False}
    assert traces["assistant"].metrics == {"user_turns": 3.0}
    assert traces["assistant"].rewards["brief"] == 1.0
    assert engine.seats == ["user", "", "user", "", "user"]
    callers = [body for body in engine.requests if "messages" in body]
    assert {(body["model"], body["temperature"], body["max_tokens"]) for body in callers} == {("caller.v9", 0.3, 40)}
    assert {body["model"] for body in engine.requests if "token_ids" in body} == {"tiny"}
    assert "You want to know when the" in callers[0]["messages"][0]["content"]
    # The assistant knows its desk and not what the caller wants.
    desk = bytes(token for token in engine.spoken[0][0] if token < 256).decode()
    assert "bakery: Mon-Fri 6:30-18:00" in desk and "You want to know" not in desk


async def test_a_user_that_talks_on_is_ended_by_its_own_limit(make_release):
    release = await asyncio.to_thread(make_release, "opening_hours")
    engine = FakeEngine(reply=lambda prompt: "closed" if "Opening hours" in prompt else "And then?")
    async with running(release, engine, seats={"user": CALLER}) as environment:
        end = await environment.play(sampling=ROOM)
    assert (end.state, {trace.agent: trace.turns for trace in end.traces}) == ("ok", {"assistant": 8, "user": 8})


async def test_two_players_of_one_policy_are_rewarded_each_for_itself(make_release):
    release = await asyncio.to_thread(make_release, "nim")
    engine = scripted("1", "2", "2")
    async with running(release, engine) as environment:
        end = await environment.play(sampling=ROOM)
    assert end.state == "ok", end
    traces = {trace.agent: trace for trace in end.traces}
    assert {name: trace.rewards for name, trace in traces.items()} == {
        "first": {"well_formed": 1.0, "won": 1.0},
        "second": {"well_formed": 1.0, "won": 0.0},
    }
    assert {name: (trace.trainable, trace.turns) for name, trace in traces.items()} == {"first": (True, 2), "second": (True, 1)}
    assert len(set(engine.sessions)) == 2


async def test_a_player_that_is_never_asked_has_no_trace(make_release):
    release = await asyncio.to_thread(make_release, "nim")
    async with running(release, scripted("I take nine")) as environment:
        (trace,) = (await environment.play(sampling=ROOM)).traces
    assert (trace.agent, trace.rewards) == ("first", {"well_formed": 0.0, "won": 0.0})


async def test_a_frozen_opponent_is_no_learner_whatever_the_environment_says(make_release):
    release = await asyncio.to_thread(make_release, "nim")
    engine = FakeEngine(reply=lambda prompt: "1")
    async with running(release, engine, seats={"second": CALLER}) as environment:
        end = await environment.play(sampling=ROOM)
    assert {trace.agent: trace.trainable for trace in end.traces} == {"first": True, "second": False}
    assert engine.seats == ["", "second", "", "second", ""]


async def test_an_agent_that_the_environment_does_not_have_is_named(make_release):
    release = await asyncio.to_thread(make_release, "nim")
    with pytest.raises(EnvironmentBroken, match="there is no agent third here; there are first, second"):
        async with running(release, seats={"third": CALLER}):
            pass
