"""`step_kl`: how far a step moved the policy is what the next one finds between the same rollouts and itself."""

import random

import pytest
import torch

from tests.numerics.curves.playing import sample_replies
from tests.numerics.recorded import batch, new_pool, recorded, run_id, sample, spec, step_together
from tests.numerics.test_learning import batch_of, problems, prompts_of
from trainer.contracts.training import OptimizerSpec
from trainer.core.probe import PROBE_TOKENS, Probe

RUN = run_id("one")
FAST = spec(optimizer=OptimizerSpec(learning_rate=2e-2))


@pytest.mark.parametrize("pack_tokens", [40, 4096])
def test_the_next_step_finds_the_same_divergence_in_the_same_rollouts(tmp_path, pack_tokens):
    pool = new_pool(tmp_path, pack_tokens=pack_tokens, dtype=torch.float64)
    pool.open(RUN, FAST)
    prompts = prompts_of(problems(random.Random(0), 2, 4))
    replies = sample_replies(pool, {RUN: prompts}, torch.Generator().manual_seed(0))[RUN]
    advantages = [1.0, -1.0] * 4
    (first,) = step_together(pool, [batch_of(RUN, 1, prompts, replies, advantages)])
    (second,) = step_together(pool, [batch_of(RUN, 2, prompts, replies, advantages, lag=1)])
    assert first.metrics["mismatch_kl"] < 1e-12 and first.metrics["step_kl"] > 1e-4
    assert first.metrics["step_kl"] == pytest.approx(second.metrics["mismatch_kl"], rel=1e-6)


def test_a_probe_is_the_first_samples_that_are_enough(tmp_path):
    pool = new_pool(tmp_path)
    pool.open(RUN, FAST)
    job = pool.prepare(recorded(RUN, 1, seed=0, count=40)[0])
    lengths = [len(one.trained_P) for one in job.streams.samples]
    probe = job.accumulation.probe
    assert probe.tokens == sum(lengths[: len(probe.samples)]) >= PROBE_TOKENS > probe.tokens - lengths[len(probe.samples) - 1]
    short = pool.prepare(recorded(RUN, 1, seed=0, count=2)[0])
    assert len(short.accumulation.probe.samples) == 2


def test_what_no_policy_sampled_is_not_probed(tmp_path):
    pool = new_pool(tmp_path)
    pool.open(RUN, FAST)
    read = sample(random.Random(0), 20).model_copy(
        update={"rl_weights": None, "advantages": None, "ce_weights": [0.0] + [1.0] * 19}
    )
    assert Probe.of(pool.prepare(batch(RUN, 1, [read])).streams) is None
