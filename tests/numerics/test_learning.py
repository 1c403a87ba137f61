"""Two runs with opposite rewards learn what each is paid for, side by side in one trainer.

The sampler here is the trainer's own forward pass without a cache: what is tested is learning, not serving.
"""

import random

import pytest
import torch

from tests.numerics.curves.playing import sample_replies
from tests.numerics.recorded import new_pool, run_id, spec, step_together
from trainer.algorithms import algorithm_for
from trainer.contracts.run_config import AlgorithmConfig
from trainer.contracts.samples import TrainBatch, TrainSample
from trainer.contracts.training import OptimizerSpec
from trainer.models.tiny_recipe.lessons import RULES, Turn, prompt_of, question
from trainer.models.tiny_recipe.tokenizer import TURN_END, decode

PAID = {run_id("sum"): "sum", run_id("max"): "max"}
GROUPS, GROUP_SIZE, STEPS = 8, 8, 30


def reward_of(rule: str, reply: list[int], x: int, y: int) -> float:
    text = decode(reply[:-1]) if reply[-1] == TURN_END else ""
    return float(text.split(" ")[-1] == str(RULES[rule](x, y)))


def problems(rng: random.Random, count: int, repeat: int) -> list[tuple[int, int]]:
    # Digits from 1: where a digit is 0, sum and maximum agree, and the rewards would not oppose each other.
    drawn = [(rng.randint(1, 9), rng.randint(1, 9)) for _ in range(count)]
    return [problem for problem in drawn for _ in range(repeat)]


def prompts_of(asked: list[tuple[int, int]]) -> list[list[int]]:
    return [prompt_of([Turn("user", question(x, y))]) for x, y in asked]


def batch_of(run: str, step: int, prompts, replies, advantages, *, lag: int = 0) -> TrainBatch:
    samples = []
    for prompt, (ids, logprobs), advantage in zip(prompts, replies, advantages, strict=True):
        before, count = [0.0] * len(prompt), len(prompt) + len(ids)
        samples.append(
            TrainSample(
                token_ids=prompt + ids,
                mask=[False] * len(prompt) + [True] * len(ids),
                logprobs=before + logprobs,
                temperatures=[1.0] * count,
                policy_versions=[step - 1 - lag] * count,
                rl_weights=before + [1.0] * len(ids),
                advantages=before + [advantage] * len(ids),
            )
        )
    return TrainBatch(run_id=run, step=step, n_rl=sum(sum(s.mask) for s in samples), samples=samples)


def train_both(pool, seed: int) -> dict[str, list[float]]:
    rng, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    grpo = algorithm_for(AlgorithmConfig(id="grpo"))
    curves: dict[str, list[float]] = {run: [] for run in PAID}
    for step in range(1, STEPS + 1):
        asked = {run: problems(rng, GROUPS, GROUP_SIZE) for run in PAID}
        replies = sample_replies(pool, {run: prompts_of(asked[run]) for run in PAID}, generator)
        batches = []
        for run, rule in PAID.items():
            rewards = [reward_of(rule, ids, x, y) for (ids, _), (x, y) in zip(replies[run], asked[run], strict=True)]
            groups = [rewards[i : i + GROUP_SIZE] for i in range(0, len(rewards), GROUP_SIZE)]
            advantages = [advantage for group in groups for advantage in grpo.advantages(group, [0] * GROUP_SIZE)]
            batches.append(batch_of(run, step, prompts_of(asked[run]), replies[run], advantages))
            curves[run].append(sum(rewards) / len(rewards))
        results = step_together(pool, batches)
        # The sampler and the trainer are one forward pass here: at lag 0 they must agree.
        assert all(result.metrics["mismatch_kl"] < 1e-8 for result in results)
    return curves


def evaluate(pool, rule_of: dict[str, str]) -> dict[str, float]:
    asked = problems(random.Random(99), 128, 1)
    replies = sample_replies(pool, dict.fromkeys(PAID, prompts_of(asked)), torch.Generator().manual_seed(99))
    scores = {}
    for run, rule in rule_of.items():
        scores[run] = sum(reward_of(rule, ids, x, y) for (ids, _), (x, y) in zip(replies[run], asked, strict=True)) / len(asked)
    return scores


@pytest.mark.timeout(900)
def test_opposite_rewards_are_both_learnt_in_one_trainer(tmp_path):
    pool = new_pool(tmp_path, pack_tokens=4096)
    for seed, run in enumerate(PAID):
        pool.open(run, spec(seed=seed, optimizer=OptimizerSpec(learning_rate=2e-3)))
    before = evaluate(pool, PAID)
    curves = train_both(pool, seed=0)
    after = evaluate(pool, PAID)
    sum_run, max_run = PAID
    crossed = evaluate(pool, {sum_run: "max", max_run: "sum"})
    for run in PAID:
        assert before[run] <= 0.45 and after[run] >= 0.8, (before, after, curves)
        assert sum(curves[run][-5:]) / 5 >= 0.8
        assert crossed[run] <= 0.1
    assert pool.model.digest_now() == pool.base_digest
