"""What a sequence gets does not depend on who shares its batch, how its prompt is cut, or when it came."""

import pytest
import torch

from tests.factories.engines import make_core, make_sequence, run
from trainer.contracts.generation import SamplingParams
from trainer.inference import core as core_module
from trainer.inference.lora import AdapterWeights
from trainer.inference.sequence import FinishReason


def solo(model, prompt, adapter, **fields):
    return run(make_core(model), make_sequence(prompt, adapter, **fields))[0]


PROMPTS = [[7 * i % 250 + 1 for i in range(start, start + size)] for start, size in enumerate((3, 30, 11, 1, 17, 64, 5, 40, 9))]


def test_adapters_and_base_in_one_batch_equal_each_alone(model, adapters):
    sharers = [*adapters[:3], None, *adapters[3:4], None]
    mixed = run(make_core(model), *[make_sequence(p, a) for p, a in zip(PROMPTS, sharers, strict=False)])
    alone = [solo(model, p, a) for p, a in zip(PROMPTS, sharers, strict=False)]
    assert mixed == alone
    assert mixed[0] != solo(model, PROMPTS[0], None), "the adapter must have an effect"


def test_more_adapters_than_slots_take_turns(model, adapters):
    core = make_core(model, adapter_slots=2)
    eight = [adapters[index] for index in (0, 1, 3, 4, 6)]  # one rank class
    mixed = run(core, *[make_sequence(PROMPTS[i], a) for i, a in enumerate(eight)])
    assert mixed == [solo(model, PROMPTS[i], a) for i, a in enumerate(eight)]


def test_a_prompt_longer_than_a_step_is_computed_in_chunks(model, adapters):
    long_prompt = [i % 250 + 1 for i in range(150)]
    chunked = run(make_core(model, step_tokens_max=16), make_sequence(long_prompt, adapters[0]), make_sequence([5], None))
    assert chunked == [solo(model, long_prompt, adapters[0]), solo(model, [5], None)]


def test_a_long_prompt_does_not_hold_up_the_others(model):
    core = make_core(model, step_tokens_max=16)
    early = make_sequence([1, 2, 3], max_new=20)
    core.scheduler.add(early)
    core.step()
    core.scheduler.add(make_sequence([9] * 200, max_new=4))
    for step in range(5):
        core.step()
        assert len(early.token_ids) == step + 2


def test_late_arrivals_do_not_change_what_runs(model, adapters):
    core = make_core(model)
    first = make_sequence(PROMPTS[1], adapters[2], max_new=20)
    core.scheduler.add(first)
    for index in range(8):
        core.step()
        core.scheduler.add(make_sequence(PROMPTS[index], adapters[index % 3], max_new=3))
    while not first.is_finished:
        core.step()
    assert first.token_ids == solo(model, PROMPTS[1], adapters[2], max_new=20)


def test_a_seeded_sequence_repeats_its_tokens_in_any_company(model, adapters):
    sampling = SamplingParams(temperature=0.8, seed=5, max_tokens=12)
    alone = solo(model, PROMPTS[2], adapters[0], sampling=sampling, max_new=12)
    crowd = [make_sequence(p, adapters[1], sampling=SamplingParams(max_tokens=12), max_new=12) for p in PROMPTS]
    crowded = make_sequence(PROMPTS[2], adapters[0], sampling=sampling, max_new=12)
    run(make_core(model), *crowd, crowded)
    assert crowded.token_ids == alone
    other = SamplingParams(temperature=0.8, seed=6, max_tokens=12)
    assert solo(model, PROMPTS[2], adapters[0], sampling=other, max_new=12) != alone


def test_non_finite_weights_end_their_own_rows_only(model, adapters):
    poison = AdapterWeights(digest="f" * 64, rank=8, flat=torch.full_like(adapters[0].flat, float("nan")))
    core = make_core(model, kv_cache_bytes=300 * 256)
    poisoned, healthy = make_sequence(PROMPTS[0], poison), make_sequence(PROMPTS[0], adapters[0])
    run(core, poisoned, healthy)
    assert (poisoned.finish_reason, poisoned.token_ids) == (FinishReason.NON_FINITE, [])
    assert healthy.token_ids == solo(model, PROMPTS[0], adapters[0])
    # The blocks that held the poison serve the next sequence.
    assert run(core, make_sequence([3] * 200, None)) == [solo(model, [3] * 200, None)]


def test_ending_returns_everything(model, adapters):
    core = make_core(model)
    blocks, lanes = core.cache.free_count, core.lanes.free_count
    sequences = [make_sequence(p, adapters[i % 3], max_new=10) for i, p in enumerate(PROMPTS)]
    for sequence in sequences:
        core.scheduler.add(sequence)
    core.step()
    for sequence in sequences[:4]:
        core.finish(sequence, FinishReason.ABORT)
        core.finish(sequence, FinishReason.DEADLINE)  # a second end changes nothing
        assert sequence.finish_reason is FinishReason.ABORT
    run(core)
    while core.scheduler.has_work:
        core.step()
    assert (core.cache.free_count, core.lanes.free_count) == (blocks, lanes)
    assert all(not layer.any() for layer in core.cache.layers), "no key outlives its sequence"


def test_it_stops_at_a_stop_token(model):
    free = solo(model, PROMPTS[1], None, max_new=10)
    stop = next(token for index, token in enumerate(free) if token not in free[:index] and index > 0)
    sequence = make_sequence(PROMPTS[1], None, max_new=10, stop_ids=frozenset({stop}))
    run(make_core(model), sequence)
    assert sequence.token_ids == free[: free.index(stop) + 1]
    assert sequence.finish_reason is FinishReason.STOP


def test_prompt_scores_equal_the_scores_of_sampled_tokens(model, adapters):
    """Scoring a finished answer as a prompt gives the numbers that its sampling gave, chunks or not."""
    sampling = SamplingParams(temperature=0.7, seed=1, max_tokens=20)
    sampled = make_sequence(PROMPTS[4], adapters[0], sampling=sampling, max_new=20)
    run(make_core(model), sampled)
    whole = [*sampled.prompt, *sampled.token_ids]
    scored = make_sequence(whole, adapters[0], sampling=sampling, max_new=1, prompt_top_logprobs=2)
    run(make_core(model, step_tokens_max=16), scored)
    assert len(scored.prompt_logprobs) == len(scored.prompt_tops) == len(whole) - 1
    assert scored.prompt_logprobs[-20:] == pytest.approx(sampled.logprobs, abs=5e-5)


@pytest.mark.parametrize("step_tokens", [16, 17, 64])
def test_scoring_samples_nothing_and_holds_nothing_afterwards(model, adapters, step_tokens):
    """Beside rows that do sample, whose tokens it does not change; a prompt may end where a chunk does."""
    sampling = SamplingParams(temperature=0.7, seed=1, max_tokens=20)
    sampled = make_sequence(PROMPTS[4], adapters[0], sampling=sampling, max_new=20)
    alone = run(make_core(model), sampled)[0]
    whole = [*sampled.prompt, *sampled.token_ids]
    core = make_core(model, step_tokens_max=step_tokens)
    scored = [make_sequence(whole, adapters[0], sampling=sampling, max_new=0, prompt_top_logprobs=0) for _ in range(2)]
    beside = make_sequence(PROMPTS[4], adapters[0], sampling=sampling, max_new=20)
    assert run(core, scored[0], beside, scored[1])[1] == alone
    for sequence in scored:
        assert (sequence.token_ids, sequence.finish_reason) == ([], FinishReason.LENGTH)
        assert sequence.prompt_logprobs[-20:] == pytest.approx(sampled.logprobs, abs=5e-5)
    assert core.cache.free_count == core.cache.blocks_total
    assert not core.scheduler.has_work


def test_a_prompt_as_long_as_the_context_is_scored_however_it_is_cut(model, monkeypatch):
    def scores(rows: int, step_tokens: int) -> list[float]:
        monkeypatch.setattr(core_module, "SCORED_ROWS_MAX", rows)
        core = make_core(model, step_tokens_max=step_tokens)
        prompt = [7 * i % 250 for i in range(core.lanes.tokens.shape[1])]
        whole = make_sequence(prompt, max_new=0, prompt_top_logprobs=0, sampling=SamplingParams())
        run(core, whole)
        return whole.prompt_logprobs

    once = scores(256, 256)
    assert len(once) == 255
    assert scores(7, 100) == pytest.approx(once, abs=5e-5) == scores(1, 64)


def test_an_engine_that_cannot_hold_one_sequence_does_not_start(model):
    with pytest.raises(ValueError, match="does not hold one sequence"):
        make_core(model, kv_cache_bytes=4096)
