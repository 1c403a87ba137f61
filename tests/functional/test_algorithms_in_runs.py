"""What a run's algorithms do to its batches, driven through the orchestrator's real HTTP."""

import asyncio
from pathlib import Path

import pytest

from tests.fixtures.orchestrator_world import answer, world
from tests.functional.test_orchestrator import attempt, run_config, run_spec
from trainer.contracts.base import new_id
from trainer.contracts.rollouts import RolloutEnd, TraceReport


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


async def two_turns(asked, runner):
    """A reply, three tokens of the environment, another reply; every second rollout is right."""
    trace_id, prompt = new_id(), [257, 49, 43, 49]
    said = await runner.generate(asked, trace_id, prompt)
    await runner.generate(asked, trace_id, [*prompt, *said, 257, 50, 258])
    reward = float(hash(asked.rollout_id) % 2)
    return RolloutEnd(state="ok", traces=[TraceReport(trace_id=trace_id, state="ok", reward=reward, turns=2)])


async def test_environments_with_algorithms_and_group_sizes_of_their_own_share_a_batch(tmp_path: Path):
    environments = [
        {"id": "acme/echoing", "algorithm": {"id": "echo", "options": {"alpha": 0.5}}, "ratio": 2.0},
        {"id": "acme/alone", "algorithm": {"id": "rae"}, "group_size": 1},
        {"id": "acme/plain", "group_size": 2},
    ]
    async with world(run_spec(config=run_config(environments=environments)), tmp_path, two_turns) as place:
        finish = await attempt(place)
    assert finish.outcome == "completed"
    batches = [sent.batch for sent in place.trainer.batches.values()]
    samples = [sample for batch in batches for sample in batch.samples]
    sizes = {(s.environment, s.group_id): 0 for s in samples}
    for sample in samples:
        sizes[sample.environment, sample.group_id] += 1
    assert {(environment, size) for (environment, _), size in sizes.items()} == {
        ("acme/echoing", 4),
        ("acme/alone", 1),
        ("acme/plain", 2),
    }
    for batch in batches:
        weights = [weight for sample in batch.samples for weight in sample.rl_weights]
        foretold = [weight for sample in batch.samples for weight in sample.ce_weights or []]
        assert (batch.n_rl, batch.n_ce, batch.n_ref_kl) == (sum(w != 0 for w in weights), sum(w != 0 for w in foretold), 0)
        assert batch.n_ce == 3 * sum(sample.environment == "acme/echoing" for sample in batch.samples)
    told = {sample.environment: sample.ce_weights for sample in samples}
    assert told == {"acme/echoing": [0] * 6 + [0.5] * 3 + [0] * 2, "acme/alone": None, "acme/plain": None}
