"""When another group is started: places in flight are kept full, and nothing is made that would only wait."""

import asyncio

import pytest

from tests.fixtures.scripted_run import ScriptedEnvironment, ScriptedRun, good
from tests.fixtures.virtual_time import run_virtually
from trainer.contracts.rollouts import RolloutEnd, RolloutRequest
from trainer.contracts.run_config import RunConfig

BATCH, SIZE, PLACES = 8, 4, 16
CONFIG = RunConfig.model_validate(
    {
        "model": {"name": "tiny"},
        "environments": [{"id": "acme/digits"}],
        "max_steps": 100,
        "batch_size": BATCH,
        "rollouts_per_example": SIZE,
        "max_inflight_rollouts": PLACES,
    }
)


def started_within(seconds: float, run: ScriptedRun) -> int:
    async def live() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(seconds):
                await run.attempt()

    run_virtually(live())
    return len(run.environments[0].started)


def test_finished_members_of_a_group_that_waits_for_its_last_one_take_no_place(tmp_path):
    """One member of each group takes ten seconds, the others one. Groups begin as places come free, second by second: 4, 3, 2,
    and then one each, until thirteen last members leave room for none."""
    asked: dict[str, int] = {}

    async def play(request: RolloutRequest, environment: ScriptedEnvironment) -> RolloutEnd:
        number = asked.setdefault(request.rollout_id, len(asked))
        await environment.take(request.rollout_id, 1.0 if number % SIZE else 10.0)
        return good(environment.say(request), float(number % 2))

    assert started_within(9.5, ScriptedRun(CONFIG, tmp_path, play)) == 13 * SIZE


def test_nothing_is_started_while_a_whole_batch_waits_for_the_trainer(tmp_path):
    """The first step never ends. Sixteen rollouts at once fill its batch and the next one; none follows."""
    count = iter(range(10_000))

    async def play(request: RolloutRequest, environment: ScriptedEnvironment) -> RolloutEnd:
        await environment.take(request.rollout_id, 1.0)
        return good(environment.say(request), float(next(count) % 2))

    async def never(_: int) -> None:
        await asyncio.sleep(1_000.0)

    run = ScriptedRun(CONFIG, tmp_path, play)
    run.trainer.before_step = never
    assert started_within(20.0, run) <= BATCH + PLACES
