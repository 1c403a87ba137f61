"""What a run's neighbours do, bring or break never shows in the run: parameters and moments are compared, not losses."""

import random

import pytest
import torch

from tests.numerics.recorded import TEAM, batch, new_pool, recorded, run_id, sample, spec, step_together
from trainer.contracts.adapters import LoraSpec
from trainer.contracts.training import LossSpec, OptimizerSpec
from trainer.core.errors import NoFreeSlot, NonFinite, NotServable, RunMismatch, RunNotOpen, StepOutOfOrder

RUN_A, RUN_B = run_id("a"), run_id("b")
STEPS = 20
UNLIKE = spec(
    lora=LoraSpec(rank=4, alpha=32, target_modules=("q_proj", "v_proj", "down_proj")),
    optimizer=OptimizerSpec(learning_rate=5e-4, betas=(0.8, 0.99), schedule="cosine", total_steps=STEPS, weight_decay=0.01),
    loss=LossSpec(kind="ppo_clip"),
    seed=7,
)


def state(pool, run=RUN_A) -> torch.Tensor:
    tenant = pool.tenant(run)
    return torch.cat([tenant.adapter.params_P.detach(), tenant.optimizer.first_P, tenant.optimizer.second_P]).clone()


def alone(root, batches, run_spec, **options) -> torch.Tensor:
    pool = new_pool(root, **options)
    pool.open(batches[0].run_id, run_spec)
    for one in batches:
        step_together(pool, [one])
    return state(pool, batches[0].run_id)


def test_two_runs_together_equal_each_alone(tmp_path):
    a, b = recorded(RUN_A, STEPS, seed=1), recorded(RUN_B, STEPS, seed=2, count=9)
    pool = new_pool(tmp_path / "both")
    pool.open(RUN_A, spec())
    pool.open(RUN_B, UNLIKE)
    shared = sum(step_together(pool, pair)[0].packs_shared for pair in zip(a, b, strict=True))
    assert shared >= STEPS
    assert (state(pool, RUN_A) - alone(tmp_path / "a", a, spec())).abs().max() <= 1e-6
    assert (state(pool, RUN_B) - alone(tmp_path / "b", b, UNLIKE)).abs().max() <= 1e-6


def test_a_run_beside_seven_others_equals_the_run_alone(tmp_path):
    runs = [run_id(name) for name in "abcdefgh"]
    recordings = [recorded(run, STEPS, seed=seed, count=4, longest=30) for seed, run in enumerate(runs)]
    pool = new_pool(tmp_path / "all")
    for seed, run in enumerate(runs):
        pool.open(run, spec(lora=LoraSpec(rank=2 + 2 * seed, alpha=16), seed=seed))
    for together in zip(*recordings, strict=True):
        step_together(pool, together)
    expected = alone(tmp_path / "alone", recordings[0], spec(lora=LoraSpec(rank=2, alpha=16)))
    assert (state(pool, runs[0]) - expected).abs().max() <= 1e-6


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_strict_isolation_is_bit_equal_to_the_run_alone(tmp_path, dtype):
    a, b = recorded(RUN_A, 5, seed=1), recorded(RUN_B, 5, seed=2)
    pool = new_pool(tmp_path / "both", dtype=dtype, strict=True)
    pool.open(RUN_A, spec())
    pool.open(RUN_B, UNLIKE)
    results = [step_together(pool, pair)[0] for pair in zip(a, b, strict=True)]
    assert sum(result.packs_shared for result in results) == 0
    assert torch.equal(state(pool), alone(tmp_path / "alone", a, spec(), dtype=dtype, strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_neighbours_content_does_not_move_a_bit(tmp_path, dtype):
    a = recorded(RUN_A, 3, seed=1)
    states = []
    for seed in (2, 3):
        shape = random.Random(0)
        others = [[sample(random.Random(seed * 100 + s), shape.randint(5, 40)) for s in range(5)] for _ in a]
        pool = new_pool(tmp_path / str(seed), dtype=dtype, pack_tokens=10_000)
        pool.open(RUN_A, spec())
        pool.open(RUN_B, UNLIKE)
        for own, other in zip(a, others, strict=True):
            step_together(pool, [own, batch(RUN_B, own.step, other)])
        states.append(state(pool))
    assert torch.equal(*states)


def test_a_neighbour_that_joins_and_leaves_changes_nothing(tmp_path):
    a, b = recorded(RUN_A, 6, seed=1), recorded(RUN_B, 2, seed=2)
    pool = new_pool(tmp_path / "both")
    pool.open(RUN_A, spec())
    for index, own in enumerate(a):
        if index == 2:
            pool.open(RUN_B, UNLIKE)
        if index == 4:
            pool.release(RUN_B)
        step_together(pool, [own, b[index - 2]] if index in {2, 3} else [own])
    assert (state(pool) - alone(tmp_path / "alone", a, spec())).abs().max() <= 1e-6


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-6), (torch.float64, 1e-12)])
def test_a_neighbour_evicted_in_the_middle_of_a_step_changes_nothing(tmp_path, dtype, tolerance):
    """Shared packs split A's samples otherwise. Where a gradient is nothing but its last bit, AdamW's first steps make a whole
    step of it: in float32 one parameter in ten thousand may be off by more, and no moment is. In float64 nothing is."""
    options = {"dtype": dtype, "pack_tokens": 64}
    a, b = recorded(RUN_A, STEPS, seed=1), recorded(RUN_B, 1, seed=2, count=20)
    both, single = new_pool(tmp_path / "both", **options), new_pool(tmp_path / "alone", **options)
    both.open(RUN_A, spec())
    both.open(RUN_B, UNLIKE)
    single.open(RUN_A, spec())
    job, broken_off, undisturbed = both.prepare(a[0]), both.prepare(b[0]), single.prepare(a[0])
    while not job.done:
        both.pass_over(both.next_pack([job, broken_off]))
    single.train([undisturbed])
    assert 0 < broken_off.taken < len(broken_off.streams.samples)
    both.release(RUN_B)
    expected = single.tenant(RUN_A).adapter.grads_P
    assert (both.tenant(RUN_A).adapter.grads_P - expected).abs().max() <= tolerance * expected.abs().max()
    for pool, own in ((both, job), (single, undisturbed)):
        pool.commit(own)
        for later in a[1:]:
            step_together(pool, [later])
    apart, count = (state(both) - state(single)).abs() > tolerance, single.tenant(RUN_A).adapter.params_P.numel()
    assert apart[:count].sum() <= (count / 10_000 if dtype == torch.float32 else 0) and not apart[count:].any()


def test_a_neighbour_with_huge_rewards_changes_nothing(tmp_path):
    a = recorded(RUN_A, 3, seed=1)
    rng = random.Random(5)
    pool = new_pool(tmp_path / "both")
    pool.open(RUN_A, spec())
    pool.open(RUN_B, UNLIKE)
    for own in a:
        huge = batch(RUN_B, own.step, [sample(rng, 30, advantage=1e6) for _ in range(4)])
        results = step_together(pool, [own, huge])
        assert results[1].metrics["grad_norm"] > 1e3
    assert (state(pool) - alone(tmp_path / "alone", a, spec())).abs().max() <= 1e-6


def test_a_gradient_that_is_not_finite_fails_its_run_alone(tmp_path):
    a, b = recorded(RUN_A, 3, seed=1), recorded(RUN_B, 1, seed=2)
    pool = new_pool(tmp_path / "both")
    pool.open(RUN_A, spec())
    pool.open(RUN_B, UNLIKE)
    before = state(pool, RUN_B)
    for own in a:
        good, bad = pool.prepare(own), pool.prepare(b[0])
        # What a wire that refuses NaN cannot bring: an overflow inside the pass itself.
        for row in bad.streams.samples:
            row.signals.rl_weights.fill_(float("inf"))
        pool.train([good, bad])
        with pytest.raises(NonFinite, match="not finite"):
            pool.commit(bad)
        pool.commit(good)
    assert torch.equal(state(pool, RUN_B), before) and pool.tenant(RUN_B).step == 0
    assert not pool.tenant(RUN_B).adapter.grads_P.any()
    assert (state(pool) - alone(tmp_path / "alone", a, spec())).abs().max() <= 1e-6
    step_together(pool, b)  # the run itself goes on with a good batch


def test_a_reused_slot_holds_nothing_of_its_last_owner(tmp_path):
    a, b = recorded(RUN_A, 4, seed=1), recorded(RUN_B, 3, seed=2)
    pool = new_pool(tmp_path / "one", slots=1)
    pool.open(RUN_B, UNLIKE)
    for one in b:
        step_together(pool, [one])
    pool.train([pool.prepare(b[0].model_copy(update={"step": 4}))])  # a gradient is left behind
    left = pool.tenant(RUN_B)
    pool.release(RUN_B)
    assert not any(
        t.any() for t in (left.adapter.params_P, left.adapter.grads_P, left.optimizer.first_P, left.optimizer.second_P)
    )
    assert pool.open(RUN_A, spec()).slot == 0
    for one in a:
        step_together(pool, [one])
    assert torch.equal(state(pool), alone(tmp_path / "alone", a, spec(), slots=1))


def test_the_base_weights_never_change(tmp_path):
    pool = new_pool(tmp_path)
    pool.open(RUN_A, spec())
    pool.open(RUN_B, UNLIKE)
    for pair in zip(recorded(RUN_A, 3, seed=1), recorded(RUN_B, 3, seed=2), strict=True):
        step_together(pool, pair)
    assert pool.model.digest_now() == pool.base_digest


def test_slots_run_out_and_come_back(tmp_path):
    pool = new_pool(tmp_path, slots=2)
    pool.open(RUN_A, spec())
    pool.open(RUN_B, spec())
    with pytest.raises(NoFreeSlot):
        pool.open(run_id("c"), spec())
    pool.release(RUN_A)
    assert pool.open(run_id("c"), spec()).slot == 0
    with pytest.raises(RunNotOpen):
        pool.prepare(recorded(RUN_A, 1, seed=0)[0])


def test_refusals_name_what_is_wrong(tmp_path):
    pool = new_pool(tmp_path, rank_max=16, target_modules=("q_proj", "v_proj"))
    small = LoraSpec(target_modules=("q_proj",))
    with pytest.raises(NotServable, match="rank: 17 is above this pool's 16"):
        pool.open(RUN_A, spec(lora=small.model_copy(update={"rank": 17})))
    with pytest.raises(NotServable, match="o_proj"):
        pool.open(RUN_A, spec(lora=LoraSpec(target_modules=("q_proj", "o_proj"))))
    pool.open(RUN_A, spec(lora=small))
    with pytest.raises(StepOutOfOrder, match="step 2 was sent, but 0 steps are done"):
        pool.prepare(recorded(RUN_A, 2, seed=0)[1])
    with pytest.raises(RunMismatch, match="seed"):
        pool.open(RUN_A, spec(lora=small, seed=1))
    assert spec().team_id == TEAM
