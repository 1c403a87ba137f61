"""What a run's algorithms do to its batches, driven through the orchestrator's real HTTP."""

import asyncio
from itertools import count
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


async def test_groups_that_teach_nothing_are_replaced_and_shown_with_their_rewards(tmp_path: Path):
    async def flat_or_mixed(asked, runner):
        """Every second task is solved by everybody."""
        return await answer(asked, runner, reward=1.0 if asked.task % 2 else float(hash(asked.rollout_id) % 2))

    config = run_config(pre_batch_filters=[{"type": "zero_advantage"}])
    async with world(run_spec(config=config), tmp_path, flat_or_mixed) as place:
        finish = await attempt(place)
    assert finish.outcome == "completed"
    assert all(any(sample.advantages) for sent in place.trainer.batches.values() for sample in sent.batch.samples)
    assert [len(sent.batch.samples) for sent in place.trainer.batches.values()] == [8, 8, 8, 8]
    left_out = [row for row in place.control.summaries() if row.state == "filtered"]
    assert left_out and all(row.reward == 1.0 for row in left_out if row.task % 2)
    assert all("zero_advantage" in row.error and row.billed and not row.trained for row in left_out)
    metrics = place.control.steps()
    assert sum(values["filter/zero_advantage"] for values in metrics.values()) >= 4
    assert all(values["reward_unmasked"] >= 0 and values["failed_fraction"] == 0 for values in metrics.values())


async def test_a_task_set_that_teaches_nothing_more_does_not_keep_a_run_for_ever(tmp_path: Path):
    config = run_config(pre_batch_filters=[{"type": "zero_advantage"}], max_steps=2)
    async with world(run_spec(config=config), tmp_path, always_right) as place:
        finish = await attempt(place)
    assert finish.outcome == "completed" and place.trainer.trained == 2
    warnings = [event.payload["message"] for event in place.control.of_kind("warning")]
    assert any("teach nothing" in message for message in warnings)


async def test_rollouts_that_hang_in_a_loop_are_filtered_and_are_no_rewards_of_zero(tmp_path: Path):
    numbers = count()

    async def play(asked, runner):
        return await answer(asked, runner, reward=1.0)

    def say(prompt: list[int]) -> list[int]:
        return [49] * 6 + [258] if next(numbers) % 4 == 3 else [49, 258]

    window = {"type": "repetition", "enforce": True, "window": 5, "prob_threshold": 0.01}
    async with world(run_spec(config=run_config(pre_batch_filters=[window])), tmp_path, play) as place:
        place.engine.say = say
        finish = await attempt(place)
    assert finish.outcome == "completed"
    looped = [row for row in place.control.summaries() if row.state == "filtered"]
    assert looped and all(row.error.startswith("repetition: 5 tokens in a row") for row in looped)
    assert not any(row.trained for row in looped) and all(row.reward == 1.0 for row in looped)
    samples = [sample for sent in place.trainer.batches.values() for sample in sent.batch.samples]
    assert {len(sample.token_ids) for sample in samples} == {6}, "no looped reply is in a batch"
    assert {advantage for sample in samples for advantage in sample.advantages} == {0.0}
