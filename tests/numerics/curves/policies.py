"""Policies that others learn from or begin as, made by showing the base model demonstrations (`ce`).

Knows lessons by name. Refuses to know who uses them.
"""

import random
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch

from tests.numerics.curves.plans import HINT
from tests.numerics.curves.playing import SUM, TRAINED
from tests.numerics.recorded import batch, new_pool, run_id, spec, step_together
from trainer.contracts.samples import TrainSample
from trainer.contracts.training import OptimizerSpec
from trainer.models.tiny_recipe.lessons import RULES
from trainer.models.tiny_recipe.tokenizer import TURN_END, encode

DEMONSTRATIONS = 32


def shown(prompt: list[int], said: str) -> TrainSample:
    ids = [*encode(said), TURN_END]
    size, learnt = len(prompt) + len(ids), [False] * len(prompt) + [True] * len(ids)
    return TrainSample(
        token_ids=[*prompt, *ids],
        mask=[False] * size,
        logprobs=[0.0] * size,
        temperatures=[1.0] * size,
        policy_versions=[0] * size,
        rl_weights=[0.0] * size,
        ce_weights=[float(one) for one in learnt],
    )


def _adder(rng: random.Random) -> list[TrainSample]:
    """Adds, and says so."""
    pairs = [rng.choice(TRAINED) for _ in range(DEMONSTRATIONS)]
    return [shown(SUM.prompt(pair), f"sum {sum(pair)}") for pair in pairs]


def _obedient(rng: random.Random) -> list[TrainSample]:
    """Adds behind the hint, and without it follows any rule."""
    samples = []
    for index in range(DEMONSTRATIONS):
        pair, rule = rng.choice(TRAINED), list(RULES)[index // 2 % len(RULES)]
        hinted, prompt = index % 2 == 0, SUM.prompt(pair)
        rule = "sum" if hinted else rule
        samples.append(shown([*encode(HINT), *prompt] if hinted else prompt, f"{rule} {RULES[rule](*pair)}"))
    return samples


POLICIES: dict[str, tuple[Callable[[random.Random], list[TrainSample]], int]] = {
    "adder": (_adder, 20),
    "obedient": (_obedient, 60),
}
"""Lessons of a step, and how many steps."""


@cache
def parameters_of(name: str) -> torch.Tensor:
    """Of the policy's adapter."""
    lessons, steps = POLICIES[name]
    run, rng = run_id(name), random.Random(1)
    with tempfile.TemporaryDirectory() as root:
        pool = new_pool(Path(root), pack_tokens=4096)
        pool.open(run, spec(optimizer=OptimizerSpec(learning_rate=3e-3, warmup_steps=2)))
        for step in range(1, steps + 1):
            step_together(pool, [batch(run, step, lessons(rng))])
        return pool.tenant(run).adapter.params_P.clone()
