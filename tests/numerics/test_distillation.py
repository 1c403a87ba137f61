"""Distillation learns what it says: sft makes the data likelier, opd brings the pupil's distribution to the teacher's, opsd to
the policy's own behind a hint. The algorithms are the real ones; sampler and references are the trainer's own forward pass.
"""

import asyncio
import random
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from tests.numerics.recorded import batch, new_pool, run_id, spec, step_together
from tests.numerics.test_learning import problems, prompts_of, reward_of, sample_replies
from trainer.algorithms import GroupView, RolloutView, SeatView, algorithm_for
from trainer.contracts.run_config import AlgorithmConfig
from trainer.contracts.samples import TrainSample
from trainer.contracts.training import OptimizerSpec
from trainer.core.adapter_stack import AdapterStack
from trainer.core.layout import lay_out
from trainer.models.tiny_recipe.lessons import RULES
from trainer.models.tiny_recipe.tokenizer import TURN_END, encode
from trainer.orchestrator.branches import Branch

pytestmark = pytest.mark.timeout(900)
EXPERT, PUPIL = run_id("expert"), run_id("pupil")
ROLLOUTS, STEPS = 32, 12
HINT = "sum! "


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    """The tensors are so small that a second thread only waits for the first one."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@torch.no_grad()
def log_table(pool, run: str, ids: list[int]) -> torch.Tensor:
    """[T − 1, V]: row t is the distribution of token t + 1, at temperature 1."""
    layout = lay_out([np.array(ids)], [len(ids)])
    hidden = pool.model.hidden(layout, AdapterStack([pool.tenant(run).adapter], pool.model.targets, [len(ids)]))
    return pool.model.logits(hidden)[:-1].float().log_softmax(-1)


class Reader:
    """A reference: what `run` thinks of tokens now."""

    def __init__(self, pool, run: str) -> None:
        self._pool, self._run = pool, run

    async def logprobs(self, token_ids, *, policy):
        ids = list(token_ids)
        return [0.0, *log_table(self._pool, self._run, ids).gather(1, torch.tensor(ids[1:])[:, None])[:, 0].tolist()]

    def spell(self, text):
        return encode(text)


def stream_of(prompt: list[int], ids: list[int], logprobs: list[float]) -> Branch:
    before = len(prompt)
    return Branch([*prompt, *ids], [False] * before + [True] * len(ids), [0.0] * before + logprobs, [1.0] * (before + len(ids)))


def sampled(pool, run: str, rng, generator):
    """(questions, streams): one reply of `run` to each question."""
    asked = problems(rng, ROLLOUTS, 1)
    prompts = prompts_of(asked)
    replies = sample_replies(pool, {run: prompts}, generator)[run]
    return asked, [stream_of(prompt, ids, logprobs) for prompt, (ids, logprobs) in zip(prompts, replies, strict=True)]


async def learn(pool, algorithm, streams: list[Branch], step: int) -> None:
    """One step of the pupil on what the algorithm says of the streams."""
    views = tuple(RolloutView("r", 1.0, sum(s.mask), (SeatView("agent", 1.0, (s,)),)) for s in streams)
    told = await algorithm.score(GroupView("digits", 0, "pupil", views))
    samples = [
        TrainSample(
            token_ids=stream.token_ids,
            mask=stream.mask,
            logprobs=stream.logprobs,
            temperatures=stream.temperatures,
            policy_versions=[step - 1] * len(stream.mask),
            rl_weights=[0.0] * len(stream.mask),
            ce_weights=signals.seats[0][0].ce_weights,
            ref_kl_weights=signals.seats[0][0].ref_kl_weights,
            ref_logprobs=signals.seats[0][0].ref_logprobs,
        )
        for stream, signals in zip(streams, told, strict=True)
    ]
    step_together(pool, [batch(PUPIL, step, samples)])


def mean_kl(pool, teacher: str, streams: list[Branch], prefix: list[int] | None = None) -> float:
    """KL(pupil ‖ teacher behind the prefix), the whole distribution, over the tokens that were sampled."""
    total, count, before = 0.0, 0, prefix or []
    for stream in streams:
        rows = torch.tensor(stream.mask[1:])
        own = log_table(pool, PUPIL, stream.token_ids)[rows]
        other = log_table(pool, teacher, [*before, *stream.token_ids])[len(before) :][rows]
        total += float((own.exp() * (own - other)).sum())
        count += len(own)
    return total / count


def share_right(asked, streams: list[Branch], rule: str) -> float:
    replies = [[token for token, mask in zip(s.token_ids, s.mask, strict=True) if mask] for s in streams]
    return sum(reward_of(rule, reply, x, y) for reply, (x, y) in zip(replies, asked, strict=True)) / len(replies)


@dataclass(frozen=True)
class Standing:
    """`kl` from the pupil to the expert behind the prefix, `right` the share of sums among the pupil's replies."""

    kl: float
    right: float


def standing(pool, prefix: list[int]) -> Standing:
    asked, replies = sampled(pool, PUPIL, random.Random(97), torch.Generator().manual_seed(97))
    return Standing(mean_kl(pool, EXPERT, replies, prefix), share_right(asked, replies, "sum"))


async def pupils_way(pool, algorithm, prefix: list[int] | None = None) -> tuple[Standing, Standing]:
    """Where the pupil stood before and after it has learnt from its own rollouts for some steps."""
    rng, generator = random.Random(2), torch.Generator().manual_seed(2)
    before = standing(pool, prefix or [])
    for step in range(1, STEPS + 1):
        await learn(pool, algorithm, sampled(pool, PUPIL, rng, generator)[1], step)
    return before, standing(pool, prefix or [])


def behind(prefix: list[int], stream: Branch) -> Branch:
    """The stream as it is when the prefix stands before it."""
    size = len(prefix)
    return Branch(
        [*prefix, *stream.token_ids],
        [False] * size + stream.mask,
        [0.0] * size + stream.logprobs,
        [1.0] * size + stream.temperatures,
    )


def demonstrations(rng, count: int, rule: str = "sum") -> list[Branch]:
    asked = problems(rng, count, 1)
    replies = [[*encode(f"{rule} {RULES[rule](x, y)}"), TURN_END] for x, y in asked]
    return [stream_of(prompt, ids, [0.0] * len(ids)) for prompt, ids in zip(prompts_of(asked), replies, strict=True)]


def mean_logprob(pool, run: str, streams: list[Branch]) -> float:
    values = [
        log_table(pool, run, s.token_ids).gather(1, torch.tensor(s.token_ids[1:])[:, None])[torch.tensor(s.mask[1:]), 0]
        for s in streams
    ]
    return float(torch.cat(values).mean())


def make_pool(root, *, learning_rate: float = 3e-3):
    pool = new_pool(root, pack_tokens=4096)
    for run in (EXPERT, PUPIL):
        pool.open(run, spec(optimizer=OptimizerSpec(learning_rate=learning_rate, warmup_steps=2)))
    return pool


def taught(root, lessons, *, steps: int = STEPS) -> torch.Tensor:
    """The parameters of a policy that sft has shown `lessons(rng)` for some steps."""
    pool, sft, rng = make_pool(root), algorithm_for(AlgorithmConfig(id="sft")), random.Random(1)

    async def teach():
        for step in range(1, steps + 1):
            await learn(pool, sft, lessons(rng), step)

    asyncio.run(teach())
    return pool.tenant(PUPIL).adapter.params_P.clone()


@pytest.fixture(scope="module")
def adder(tmp_path_factory) -> torch.Tensor:
    """A policy that adds."""
    return taught(tmp_path_factory.mktemp("adder"), lambda rng: demonstrations(rng, ROLLOUTS))


@pytest.fixture(scope="module")
def obedient(tmp_path_factory) -> torch.Tensor:
    """A policy that adds behind the hint, and without it follows any rule."""

    def lessons(rng):
        hinted = [behind(encode(HINT), one) for one in demonstrations(rng, ROLLOUTS // 2)]
        return [*hinted, *(one for rule in RULES for one in demonstrations(rng, ROLLOUTS // 8, rule))]

    return taught(tmp_path_factory.mktemp("obedient"), lessons, steps=5 * STEPS)


def test_sft_makes_the_data_likelier_and_the_task_right(tmp_path, adder):
    pool = make_pool(tmp_path)
    pool.tenant(EXPERT).adapter.params_P.copy_(adder)
    held_out = demonstrations(random.Random(99), ROLLOUTS)
    before, after = (mean_logprob(pool, run, held_out) for run in (PUPIL, EXPERT))
    asked, replies = sampled(pool, EXPERT, random.Random(98), torch.Generator().manual_seed(0))
    assert before < -0.2 and after > -0.05
    assert share_right(asked, replies, "sum") >= 0.8


async def test_opd_brings_the_pupil_to_the_teacher(tmp_path, adder):
    pool = make_pool(tmp_path)
    pool.tenant(EXPERT).adapter.params_P.copy_(adder)
    before, after = await pupils_way(pool, algorithm_for(AlgorithmConfig(id="opd"), Reader(pool, EXPERT)))
    assert after.kl < before.kl / 3, (before, after)
    assert after.right >= before.right + 0.3


async def test_opsd_lets_the_policy_do_without_its_hint(tmp_path, obedient):
    pool = make_pool(tmp_path, learning_rate=1e-3)
    for run in (EXPERT, PUPIL):
        pool.tenant(run).adapter.params_P.copy_(obedient)
    opsd = algorithm_for(AlgorithmConfig(id="opsd", options={"hint": HINT}), Reader(pool, PUPIL))
    before, after = await pupils_way(pool, opsd, prefix=encode(HINT))
    assert after.kl < before.kl / 3, (before, after)
    assert after.right >= before.right + 0.3
