"""The trainer's share of the check: tokens a second, and bits that a neighbour must not move.

Steps go through packs, clip and optimizer; no files are written between them.
"""

import time

import torch
from torch import Tensor

from tests.bench.gpu.figures import Figure
from tests.bench.gpu.world import World
from tests.numerics.recorded import batch, run_id
from trainer.contracts.samples import TrainBatch, TrainSample
from trainer.core.pool import Pool

RUNS = [run_id(f"run{index}") for index in range(4)]


def step_batch(world: World, run: str, step: int, seed: int) -> TrainBatch:
    """Samples of one length, the second half of each sampled: the content depends on the seed, the shape does not."""
    scale, half = world.scale, world.scale.sample_tokens // 2
    drawn = torch.Generator().manual_seed(seed)
    ids = torch.randint(world.trained.shape.vocabulary_size, (scale.samples, 2 * half), generator=drawn).tolist()
    paid = torch.randn(scale.samples, generator=drawn).tolist()
    samples = [
        TrainSample(
            token_ids=row,
            mask=[False] * half + [True] * half,
            logprobs=[0.0] * half + [-10.0] * half,
            temperatures=[1.0] * (2 * half),
            policy_versions=[0] * (2 * half),
            rl_weights=[0.0] * half + [1.0] * half,
            advantages=[0.0] * half + [advantage] * half,
        )
        for row, advantage in zip(ids, paid, strict=True)
    ]
    return batch(run, step, samples)


def speed(world: World, runs: int) -> list[Figure]:
    pool = world.pool(f"speed-{runs}", RUNS[:runs])
    batches = {run: step_batch(world, run, 1, seed) for seed, run in enumerate(RUNS[:runs])}
    _step(pool, batches)
    world.settle()
    began_s = time.monotonic()
    for _ in range(world.scale.steps):
        _step(pool, batches)
    world.settle()
    tokens = sum(len(sample.token_ids) for one in batches.values() for sample in one.samples)
    return [Figure(f"train.{runs}", world.scale.steps * tokens / (time.monotonic() - began_s))]


def _step(pool: Pool, batches: dict[str, TrainBatch]) -> None:
    tenants = [pool.tenant(run) for run in batches]
    pool.train([pool.prepare(batches[one.run_id].model_copy(update={"step": one.step + 1})) for one in tenants])
    for tenant in tenants:
        tenant.check_gradient()
        tenant.apply_gradient()


def content_swap(world: World) -> list[Figure]:
    pool = world.pool("content", RUNS[:2])
    before, after = (_gradient(world, pool, neighbour_seed=seed) for seed in (2, 3))
    return [Figure("isolation.content", _gap(before, after))]


def strict(world: World) -> list[Figure]:
    pool = world.pool("strict", RUNS[:2], strict=True)
    beside, alone = (_gradient(world, pool, neighbour_seed=seed) for seed in (2, None))
    return [Figure("isolation.strict", _gap(beside, alone))]


def _gradient(world: World, pool: Pool, neighbour_seed: int | None) -> Tensor:
    """Of the first run, with the second one's content drawn from a seed, or without the second one."""
    own, other = RUNS[:2]
    jobs = [pool.prepare(step_batch(world, own, 1, 1))]
    if neighbour_seed is not None:
        jobs.append(pool.prepare(step_batch(world, other, 1, neighbour_seed)))
    pool.train(jobs)
    found = pool.tenant(own).adapter.grads_P.clone()
    for job in jobs:
        job.restart()
    return found


def _gap(left: Tensor, right: Tensor) -> float:
    """0 for equal bits alone. Raises ValueError for gradients that say nothing."""
    if not left.any() or not torch.isfinite(left).all():
        raise ValueError("the gradient is zero or not finite")
    return float((left - right).abs().max()) if not torch.equal(left, right) else 0.0
