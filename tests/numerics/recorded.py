"""Recorded batches and runs for the numeric tests: random but reproducible, in the wire's own types."""

import random
from collections.abc import Sequence
from pathlib import Path

import torch

from trainer.contracts.adapters import LoraSpec
from trainer.contracts.catalogue import model_folder
from trainer.contracts.samples import TrainBatch, TrainSample
from trainer.contracts.training import LossSpec, OptimizerSpec
from trainer.core.llama import Llama
from trainer.core.pool import Pool, PoolLimits
from trainer.core.tenants import RunSpec

TEAM = "cteam" + "0" * 20
WEIGHTS = model_folder("tiny/weights")


def run_id(name: str) -> str:
    return "c" + name.rjust(24, "0")


def spec(**changes) -> RunSpec:
    defaults = {
        "team_id": TEAM,
        "lora": LoraSpec(rank=8, alpha=16),
        "optimizer": OptimizerSpec(learning_rate=2e-3, warmup_steps=2),
        "loss": LossSpec(),
        "seed": 0,
    }
    return RunSpec(**(defaults | changes))


def sample(rng: random.Random, length: int, *, version: int = 0, advantage: float | None = None) -> TrainSample:
    """A prompt and a reply of random tokens, paid at random; a few tokens carry a cross-entropy weight too."""
    prompt = rng.randint(1, length - 1)
    sampled = [index >= prompt for index in range(length)]
    paid = rng.choice([-1.0, -0.25, 0.5, 1.0]) if advantage is None else advantage
    return TrainSample(
        token_ids=[rng.randrange(256) for _ in range(length)],
        mask=sampled,
        logprobs=[-rng.uniform(3.0, 7.0) if s else 0.0 for s in sampled],
        temperatures=[rng.choice([0.7, 1.0]) if s else 1.0 for s in sampled],
        policy_versions=[version] * length,
        rl_weights=[1.0 if s else 0.0 for s in sampled],
        advantages=[paid if s else 0.0 for s in sampled],
        ce_weights=[0.1 if index and rng.random() < 0.1 else 0.0 for index in range(length)],
    )


def batch(run: str, step: int, samples: Sequence[TrainSample]) -> TrainBatch:
    return TrainBatch(
        run_id=run,
        step=step,
        n_rl=sum(sum(w != 0 for w in s.rl_weights or []) for s in samples),
        n_ce=sum(sum(w != 0 for w in s.ce_weights or []) for s in samples),
        n_ref_kl=sum(sum(w != 0 for w in s.ref_kl_weights or []) for s in samples),
        samples=list(samples),
    )


def recorded(run: str, steps: int, *, seed: int, count: int = 6, longest: int = 45) -> list[TrainBatch]:
    """Batches of steps 1, 2, … with samples of 2 to `longest` tokens."""
    rng = random.Random(seed)
    return [batch(run, step, [sample(rng, rng.randint(2, longest)) for _ in range(count)]) for step in range(1, steps + 1)]


def new_pool(root: Path, *, dtype: torch.dtype = torch.float32, **options) -> Pool:
    return Pool(Llama(WEIGHTS, dtype), base_model="tiny", artifact_root=root, limits=PoolLimits(**options))


def step_together(pool: Pool, batches: Sequence[TrainBatch]):
    """One step of several runs, in shared packs."""
    jobs = [pool.prepare(b) for b in batches]
    pool.train(jobs)
    return [pool.commit(job) for job in jobs]
