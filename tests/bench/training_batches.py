"""What rows about the trainer train on: random tokens, cross-entropy on all but the first. Imports no peer, so that a process
that is measured by its memory holds none."""

import numpy as np

from tests.bench.sizes import VOCABULARY
from trainer.contracts.samples import TrainBatch, TrainSample
from trainer.contracts.training import OptimizerSpec

ROW_TOKENS_MAX = 32
OPTIMIZER = OptimizerSpec(learning_rate=1e-3, warmup_steps=0)


def token_rows(run: int, tokens: int) -> np.ndarray:
    """[row, token]"""
    length = min(tokens, ROW_TOKENS_MAX)
    return np.random.default_rng(run).integers(0, VOCABULARY, size=(tokens // length, length))


def batch(name: str, step: int, rows: np.ndarray) -> TrainBatch:
    count, length = rows.shape
    nothing, learnt = [0.0] * length, [0.0] + [1.0] * (length - 1)
    samples = [
        TrainSample(
            token_ids=row.tolist(),
            mask=[False] + [True] * (length - 1),
            logprobs=nothing,
            temperatures=[1.0] * length,
            policy_versions=[0] * length,
            rl_weights=nothing,
            advantages=nothing,
            ce_weights=learnt,
        )
        for row in rows
    ]
    return TrainBatch(run_id=name, step=step, n_rl=0, n_ce=count * (length - 1), n_ref_kl=0, samples=samples)
