"""What a run's algorithms do to its batches, driven through the orchestrator's real HTTP."""

import asyncio
from pathlib import Path

import pytest

from tests.fixtures.orchestrator_world import answer, world
from tests.functional.test_orchestrator import attempt, run_config, run_spec


def advantages_of(place, step: int) -> list[float]:
    return [max(sample.advantages, key=abs) for sample in place.trainer.batches[step].batch.samples]


async def always_right(asked, runner):
    return await answer(asked, runner, reward=1.0)


async def test_a_resumed_run_compares_with_the_baseline_that_it_had(tmp_path: Path):
    """By hand: with every reward 1 the k-th rollout's advantage is 0.95^k, whether or not the orchestrator dies in between:
    its baseline is neither begun again nor moved twice by the step that is replayed."""
    config = run_config(algorithm={"id": "rae"}, max_off_policy_steps=0)
    async with world(run_spec(config=config), tmp_path, always_right) as place:
        reached = asyncio.Event()

        async def die_here(step):
            if step == 3:
                reached.set()
                await asyncio.sleep(3600)

        place.trainer.before_step = die_here
        first = asyncio.ensure_future(attempt(place))
        await asyncio.wait_for(reached.wait(), 50)
        first.cancel()
        await asyncio.wait({first}, timeout=30)
        place.trainer.before_step = None
        held = max(place.control.steps(), default=0)
        place.control.spec = place.control.spec.model_copy(update={"attempt": 2, "fencing_token": 2, "resume_step": held})
        place.control.events = {key + 100_000: event for key, event in place.control.events.items()}
        finish = await attempt(place)
    assert finish.outcome == "completed"
    told = [value for step in (1, 2, 3, 4) for value in sorted(advantages_of(place, step), reverse=True)]
    assert told == pytest.approx([0.95**k for k in range(32)])
