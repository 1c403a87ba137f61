"""Sequences with a prompt in common: computed once, the same answers, for one tenant and one adapter alone."""

import pytest

from tests.factories.engines import make_core, make_sequence, run
from trainer.contracts.generation import SamplingParams
from trainer.inference.sequence import FinishReason

PROMPT = [(7 * index) % 256 for index in range(50)]
SHARED = 48


def member(seed: int = 0, *, prompt=PROMPT, adapter=None, salt: str = "team", max_new: int = 8, **fields):
    sampling = SamplingParams(temperature=1.0, seed=seed, max_tokens=max_new)
    return make_sequence(prompt, adapter, max_new=max_new, sampling=sampling, cache_salt=salt, **fields)


def computed(core, sequence) -> int:
    return int(core.lanes.computed[sequence.lane])


def admit(core, *sequences):
    for sequence in sequences:
        core.scheduler.add(sequence)
    core.scheduler.admit()


def alone(model, sequences):
    return [run(make_core(model), sequence)[0] for sequence in sequences]


@pytest.mark.parametrize("budget", [16, 40, 64, 1000])
def test_members_answer_as_they_would_alone_whatever_a_step_holds(model, adapters, budget):
    group = [member(seed, adapter=adapters[0]) for seed in range(4)]
    other = [member(seed, adapter=adapters[1]) for seed in range(2)]
    together = run(make_core(model, step_tokens_max=max(budget, 16), kv_cache_bytes=2**22), *group, *other)
    assert together == alone(
        model, [member(s, adapter=adapters[0]) for s in range(4)] + [member(s, adapter=adapters[1]) for s in range(2)]
    )


def test_a_member_starts_behind_what_is_shared_and_takes_no_blocks_for_it(model):
    core = make_core(model)
    first, second = member(1), member(2)
    free = core.cache.free_count
    admit(core, first, second)
    assert [computed(core, s) for s in (first, second)] == [0, SHARED]
    assert first.blocks[:3] == second.blocks[:3] and free - core.cache.free_count == 4 + 1
    core.finish(first, FinishReason.ABORT)
    core.finish(second, FinishReason.ABORT)
    assert core.cache.free_count == free


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ({}, {"salt": "other team"}),
        ({"salt": ""}, {"salt": ""}),
        ({}, {"prompt": [9, *PROMPT[1:]]}),
        ({}, {"prompt_top_logprobs": 0}),
    ],
    ids=["another tenant", "no tenant", "another prompt", "a scored prompt"],
)
def test_nothing_else_is_shared(model, ours, theirs):
    core = make_core(model)
    first, second = member(1, **ours), member(2, **theirs)
    admit(core, first, second)
    assert computed(core, second) == 0 and not set(first.blocks) & set(second.blocks)


def test_another_adapter_shares_nothing(model, adapters):
    core = make_core(model)
    first, second = member(1, adapter=adapters[0]), member(2, adapter=adapters[1])
    admit(core, first, second)
    assert computed(core, second) == 0 and not set(first.blocks) & set(second.blocks)


def test_a_member_goes_on_where_one_that_was_cut_off_stopped(model):
    core = make_core(model, step_tokens_max=16)
    first, *rest = (member(seed) for seed in range(3))
    admit(core, first, *rest)
    core.step()
    assert computed(core, first) == 16
    core.finish(first, FinishReason.ABORT)
    assert [computed(core, s) for s in rest] == [16, SHARED]
    while not all(sequence.is_finished for sequence in rest):
        core.step()
    assert [s.token_ids for s in rest] == alone(model, [member(1), member(2)])


def test_a_member_that_comes_later_shares_with_whoever_is_left(model):
    core = make_core(model)
    first, second, third = member(1, max_new=2), member(2, max_new=20), member(3)
    admit(core, first, second)
    while not first.is_finished:
        core.step()
    admit(core, third)
    assert computed(core, third) == SHARED and third.blocks[:3] == second.blocks[:3]
    while not third.is_finished:
        core.step()
    assert third.token_ids == alone(model, [member(3)])[0]
