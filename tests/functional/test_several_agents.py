"""Environments of several agents in the real runner: who plays whom, who is rewarded for what, and who is never trained."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass

import pytest
import pytest_asyncio

from tests.factories.model_socket import FakeEngine
from tests.fixtures.runner import ReleaseMaker, RunningEnvironment, running
from trainer.contracts.rollouts import SeatModel
from trainer.sandboxing.runners import EnvironmentBroken

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(300)]

CALLER = SeatModel(model="caller.v9", temperature=0.3, max_tokens=40)
ROOM = {"max_tokens": 40}


@dataclass(frozen=True, slots=True)
class Runners:
    """`desk`: opening_hours with a caller of its own. `table`: nim between two seats of the policy. `duel`: nim against a frozen
    second player. `error` is how a nim with an unknown agent ended."""

    desk: RunningEnvironment
    table: RunningEnvironment
    duel: RunningEnvironment
    error: BaseException | None


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def runners(make_release: ReleaseMaker) -> AsyncIterator[Runners]:
    """One runner per release and cast, started together: a start is most of what these tests cost."""
    hours, nim = [await asyncio.to_thread(make_release, name) for name in ("opening_hours", "nim")]
    casts = [(hours, {"user": CALLER}), (nim, {}), (nim, {"second": CALLER}), (nim, {"third": CALLER})]
    async with AsyncExitStack() as stack:
        starts = [stack.enter_async_context(running(release, seats=seats)) for release, seats in casts]
        desk, table, duel, unknown = await asyncio.gather(*starts, return_exceptions=True)
        yield Runners(desk, table, duel, unknown)


def script(environment: RunningEnvironment, *replies: str) -> FakeEngine:
    left = iter(replies)
    environment.engine.start_over(lambda prompt: next(left))
    return environment.engine


async def test_the_librarys_user_is_another_model_and_never_trained(runners: Runners):
    engine = script(runners.desk, "When do you close?", "What shop?", "The one I asked for.", "closed", "###DONE###")
    end = await runners.desk.play(sampling=ROOM)
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


async def test_a_user_that_talks_on_is_ended_by_its_own_limit(runners: Runners):
    runners.desk.engine.start_over(lambda prompt: "closed" if "Opening hours" in prompt else "And then?")
    end = await runners.desk.play(sampling=ROOM)
    assert (end.state, {trace.agent: trace.turns for trace in end.traces}) == ("ok", {"assistant": 8, "user": 8})


async def test_two_players_of_one_policy_are_rewarded_each_for_itself(runners: Runners):
    engine = script(runners.table, "1", "2", "2")
    end = await runners.table.play(sampling=ROOM)
    assert end.state == "ok", end
    traces = {trace.agent: trace for trace in end.traces}
    assert {name: trace.rewards for name, trace in traces.items()} == {
        "first": {"well_formed": 1.0, "won": 1.0},
        "second": {"well_formed": 1.0, "won": 0.0},
    }
    assert {name: (trace.trainable, trace.turns) for name, trace in traces.items()} == {"first": (True, 2), "second": (True, 1)}
    assert len(set(engine.sessions)) == 2


async def test_a_player_that_is_never_asked_has_no_trace(runners: Runners):
    script(runners.table, "I take nine")
    (trace,) = (await runners.table.play(sampling=ROOM)).traces
    assert (trace.agent, trace.rewards) == ("first", {"well_formed": 0.0, "won": 0.0})


async def test_a_frozen_opponent_is_no_learner_whatever_the_environment_says(runners: Runners):
    runners.duel.engine.start_over(lambda prompt: "1")
    end = await runners.duel.play(sampling=ROOM)
    assert {trace.agent: trace.trainable for trace in end.traces} == {"first": True, "second": False}
    assert runners.duel.engine.seats == ["", "second", "", "second", ""]


async def test_an_agent_that_the_environment_does_not_have_is_named(runners: Runners):
    assert isinstance(runners.error, EnvironmentBroken)
    assert "there is no agent third here; there are first, second" in str(runners.error)
