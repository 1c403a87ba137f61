"""What becomes of a rollout while there is no runner to play it."""

import asyncio
from types import SimpleNamespace
from unittest import mock

from trainer.contracts.rollouts import RolloutRequest, RunnerHealth
from trainer.orchestrator.environments.environment import Environment
from trainer.orchestrator.environments.runner_life import RunnerLife


async def test_a_rollout_that_was_cancelled_before_its_runner_was_there_is_never_begun():
    client = mock.AsyncMock()
    life = SimpleNamespace(health=RunnerHealth(status="ready", tasks_count=3), client=client)
    environment = Environment("digits", None, model_app=None, reporter=None, meter_name="m")
    waiting = asyncio.create_task(environment.roll(RolloutRequest(rollout_id="r", task=0, policy="run.v0")))
    await asyncio.sleep(0)
    await environment.cancel("r")
    with mock.patch.object(RunnerLife, "begin", mock.AsyncMock(return_value=life)):
        await environment.start()
    assert (await waiting).state == "cancelled"
    client.roll.assert_not_called()
    client.cancel.assert_not_called()
