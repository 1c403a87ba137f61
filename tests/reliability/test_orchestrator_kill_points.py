"""An orchestrator that is killed before or after anything that it says goes on: batches, bill and history are those of the run
that nobody killed. Synchronous, so that the uninterrupted run is one single run.
"""

import asyncio
import contextlib
from pathlib import Path

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.fixtures.orchestrator_world import World, world
from tests.functional.test_orchestrator import attempt, run_config, run_spec
from trainer.contracts.base import new_id
from trainer.contracts.rollouts import RolloutEnd, TraceReport

STEPS = 3
KILLED_AT = 2
SYNCHRONOUS = {"max_steps": STEPS, "max_off_policy_steps": 0, "checkpoints": {"interval": 2}, "adapters": {"interval": 1}}
SAID = ["steps", "load_lora_adapter", "rollouts", "usage", "versions", "events", "checkpoints"]
"""What an orchestrator says about a step, in its order; the journal is written before the first of them."""
PLAYED: dict[tuple[str, int], list[str]] = {}


async def play(asked, runner) -> RolloutEnd:
    """The same task of the same policy is answered in the same way and a group is paid alike, whoever asks and when."""
    trace_id = new_id()
    await runner.generate(asked, trace_id, [257, 40 + asked.task, 43, 49])
    siblings = PLAYED.setdefault((asked.policy, asked.task), [])
    siblings.append(trace_id)
    reward = float(len(siblings) % 2)
    return RolloutEnd(state="ok", traces=[TraceReport(trace_id=trace_id, state="ok", reward=reward, turns=1)])


class Death:
    """Stands before every server of the world. At the chosen message the orchestrator is dead: neither this message's answer nor
    any message after it arrives, until another attempt is let in."""

    def __init__(self, said: str, moment: str) -> None:
        self.said, self.moment = said, moment
        self.reached = asyncio.Event()
        self.armed = True

    def before(self, place: World, app: ASGIApp) -> ASGIApp:
        async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
            if self.reached.is_set() and self.armed:
                await asyncio.Event().wait()
            name = scope["path"].rsplit("/", 1)[-1]
            dies = self.armed and name == self.said and self._is_time(place)
            if dies and self.moment == "before":
                await self._die()
            await app(scope, receive, self._mute(send) if dies else send)

        return guarded

    def _is_time(self, place: World) -> bool:
        """The trainer is asked for step 2, or has committed it. A report may come when step 3 is done already."""
        done = max((step for _, step in place.trainer.results), default=0)
        return done >= (KILLED_AT - 1 if self.said == "steps" else KILLED_AT)

    def _mute(self, send: Send) -> Send:
        async def silent(message: object) -> None:
            await self._die()

        return silent

    async def _die(self) -> None:
        self.reached.set()
        await asyncio.Event().wait()


def guard(place: World, death: Death) -> None:
    for part in (place.control, place.trainer, place.engine):
        part.app.middleware_stack = death.before(place, part.app.build_middleware_stack())


def learnt(place: World) -> dict[int, list[tuple]]:
    """What each step trained on, without the ids that are drawn anew in every life."""
    return {
        step: sorted((s.token_ids, s.mask, s.logprobs, s.advantages, s.policy_versions) for s in sent.batch.samples)
        for step, sent in place.trainer.batches.items()
    }


def billed(place: World) -> dict[tuple[str, str], int]:
    return {key: quantity for key, quantity in place.control.usage.items() if key[0] != "sandbox_seconds"}


async def straight(folder: Path) -> tuple[dict, dict]:
    async with world(run_spec(config=run_config(**SYNCHRONOUS)), folder, play, tasks_count=20) as place:
        finish = await attempt(place)
        assert finish.outcome == "completed", finish
        return learnt(place), billed(place)


async def die_and_go_on(place: World, death: Death) -> None:
    guard(place, death)
    first = asyncio.ensure_future(attempt(place))
    await asyncio.wait_for(death.reached.wait(), 30)
    first.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await first
    death.armed = False
    held = max(place.control.steps(), default=0)
    place.control.spec = place.control.spec.model_copy(update={"attempt": 2, "fencing_token": 2, "resume_step": held})
    place.control.events = {key + 100_000: event for key, event in place.control.events.items()}
    finish = await attempt(place)
    assert finish.outcome == "completed", finish


@pytest.mark.heavy
@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("said", SAID)
async def test_wherever_an_orchestrator_is_killed_nothing_is_trained_reported_or_billed_twice(tmp_path, said, moment):
    expected, bill = await straight(tmp_path / "straight")
    async with world(run_spec(config=run_config(**SYNCHRONOUS)), tmp_path / "killed", play, tasks_count=20) as place:
        await die_and_go_on(place, Death(said, moment))
        assert learnt(place) == expected
        assert billed(place) == bill
        assert place.trainer.trained == STEPS
        assert [event.step for event in place.control.of_kind("step")] == list(range(1, STEPS + 1))
        assert set(place.control.checkpoints) == {2, STEPS} and set(place.control.versions) == set(range(STEPS + 1))
        for step, sent in place.trainer.batches.items():
            reported = {row.rollout_id for row in place.control.rollouts[step, "train"].summaries if row.trained}
            assert reported == {sample.rollout_id for sample in sent.batch.samples}
