"""A run of the tiny model whose rollouts are some versions old, and its steps' metrics as a run reports them.

`python -m tests.numerics.lagged_training` writes `tests/data/divergence.json`, the series that the alarm's thresholds rest on.
"""

import json
import random
import tempfile
from collections import deque
from pathlib import Path
from statistics import fmean, pstdev

import torch

from tests.numerics.curves.playing import sample_replies
from tests.numerics.recorded import new_pool, run_id, spec, step_together
from tests.numerics.test_learning import GROUP_SIZE, GROUPS, batch_of, problems, prompts_of, reward_of
from trainer.algorithms import algorithm_for
from trainer.contracts.run_config import AlgorithmConfig
from trainer.contracts.training import OptimizerSpec

SERIES = Path(__file__).parents[1] / "data" / "divergence.json"
KEPT = ("reward", "reward_std", "staleness_mean", "mismatch_kl", "step_kl", "masked_fraction", "entropy", "grad_norm")
HEALTHY = [(2e-3, 0, 0, 40), (3e-3, 0, 0, 40), (1e-3, 8, 0, 40), (2e-3, 4, 0, 40), (3e-3, 4, 0, 40), (3e-3, 8, 0, 40)]
DIVERGING = [(2e-2, 0, seed, 12) for seed in range(4)] + [(2e-2, 1, 0, 12), (2e-2, 4, 0, 12), (2e-2, 8, 0, 12), (2e-2, 8, 1, 12)]


def lagged_metrics(root: Path, *, learning_rate: float, lag: int, seed: int, steps: int) -> list[dict[str, float]]:
    """Metrics of each step; each trains on rollouts that were sampled `lag` versions before, or on the base's."""
    run = run_id("sum")
    pool = new_pool(root, pack_tokens=4096)
    pool.open(run, spec(seed=seed, optimizer=OptimizerSpec(learning_rate=learning_rate)))
    rng, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    grpo = algorithm_for(AlgorithmConfig(id="grpo"))
    waiting, found = deque(), []
    for step in range(1, steps + 1):
        while not waiting or (step == 1 and len(waiting) <= lag):
            waiting.append(_sampled(pool, run, rng, generator))
        asked, replies = waiting.popleft()
        rewards = [reward_of("sum", ids, x, y) for (ids, _), (x, y) in zip(replies, asked, strict=True)]
        groups = [rewards[start : start + GROUP_SIZE] for start in range(0, len(rewards), GROUP_SIZE)]
        advantages = [advantage for group in groups for advantage in grpo.advantages(group, [0] * GROUP_SIZE)]
        age = min(step - 1, lag)
        (result,) = step_together(pool, [batch_of(run, step, prompts_of(asked), replies, advantages, lag=age)])
        known = {"reward": fmean(rewards), "reward_std": pstdev(rewards), "staleness_mean": float(age)}
        found.append({name: value for name, value in {**result.metrics, **known}.items() if name in KEPT})
        waiting.append(_sampled(pool, run, rng, generator))
    return found


def _sampled(pool, run: str, rng: random.Random, generator: torch.Generator):
    asked = problems(rng, GROUPS, GROUP_SIZE)
    return asked, sample_replies(pool, {run: prompts_of(asked)}, generator)[run]


def _series(learning_rate: float, lag: int, seed: int, steps: int) -> dict:
    with tempfile.TemporaryDirectory() as root:
        metrics = lagged_metrics(Path(root), learning_rate=learning_rate, lag=lag, seed=seed, steps=steps)
    rows = [[float(f"{step[name]:.3g}") for name in KEPT] for step in metrics]
    return {"learning_rate": learning_rate, "lag": lag, "seed": seed, "rows": rows}


if __name__ == "__main__":
    series = {name: [_series(*one) for one in chosen] for name, chosen in (("healthy", HEALTHY), ("diverging", DIVERGING))}
    SERIES.write_text(json.dumps({"columns": KEPT, **series}) + "\n")
