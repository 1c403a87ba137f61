"""P12: what a run has learnt after so many samples when it trains on older rollouts, against the same run without any.

Orchestrator, trainer service, engine core and the tiny model are the real ones; the clock is virtual. An environment asks for
the sum of two digits and takes a lognormal(1) time with a median of a second to judge an answer. What is compared is the reward
of the last version, on every question.
"""

import asyncio
import contextlib
import itertools
import random
import tempfile
from functools import cache
from pathlib import Path

import torch
from starlette.types import Receive, Scope, Send

from tests.bench.rows import Bound, Disagreement, Row
from tests.fixtures.scripted_run import TASKS, ScriptedEnvironment, ScriptedRun, good
from tests.fixtures.virtual_time import run_virtually
from tests.numerics.recorded import WEIGHTS, new_pool
from trainer.contracts.adapters import adapter_path
from trainer.contracts.generation import AdapterIdentity, SamplingParams
from trainer.contracts.names import parse_engine_name
from trainer.contracts.rollouts import RolloutEnd, RolloutRequest
from trainer.contracts.run_config import RunConfig
from trainer.core.pool import Pool
from trainer.inference.adapter_files import AdapterReader
from trainer.inference.core import EngineCore
from trainer.inference.limits import EngineLimits
from trainer.inference.llama import load_llama
from trainer.inference.lora import AdapterWeights
from trainer.inference.sequence import Sequence
from trainer.models.tiny_recipe.lessons import RULES, Turn, prompt_of, question
from trainer.models.tiny_recipe.tokenizer import TURN_END, decode
from trainer.service.app import create_app
from trainer.service.desk import Desk

BATCH, GROUP_SIZE, STEPS = 32, 8, 30
REPLY_MAX = 7
BOUNDS = (8, 16, 32)
TRAIN_S = 0.25
GATHER_S = 0.05
"""Questions of so long come into one batch of the engine."""
DIGITS = list(itertools.product(range(1, 10), repeat=2))
TASK_DIGITS = random.Random(0).sample(DIGITS, TASKS)
TRIES = 8


def config(bound: int, seed: int) -> RunConfig:
    return RunConfig.model_validate(
        {
            "model": {"name": "tiny"},
            "environments": [{"id": "acme/sums"}],
            "max_steps": STEPS,
            "batch_size": BATCH,
            "rollouts_per_example": GROUP_SIZE,
            "max_off_policy_steps": bound,
            "learning_rate": 2e-3,
            "max_tokens": REPLY_MAX,
            "seed": seed,
        }
    )


def prompt_about(digits: tuple[int, int]) -> list[int]:
    prompt: list[int] = prompt_of([Turn("user", question(*digits))])
    return prompt


def reward_for(reply: list[int], digits: tuple[int, int]) -> float:
    text = decode(reply[:-1]) if reply[-1] == TURN_END else ""
    return float(text.split(" ")[-1] == str(RULES["sum"](*digits)))


class Sampler:
    """One engine for every version of a run; each answer is that of the version that was asked for."""

    def __init__(self, root: Path, base_digest: str, seed: int) -> None:
        model = load_llama(WEIGHTS, device=torch.device("cpu"), dtype=torch.float32, context_max=256)
        self._core = EngineCore(model, EngineLimits(sequences_max=BATCH * 4))
        self._reader = AdapterReader(root=root, shape=model.shape, base_digest=base_digest, rank_max=64)
        self._root, self._luck = root, random.Random(seed)
        self._asked: list[tuple[Sequence, asyncio.Future[Sequence]]] = []
        self._versions: dict[str, AdapterWeights] = {}

    async def answer(self, policy: str, prompt: list[int]) -> Sequence:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Sequence] = loop.create_future()
        if not self._asked:
            loop.call_later(GATHER_S, self._gathered)
        self._asked.append((self._sequence(policy, prompt), future))
        return await future

    def answers(self, policy: str, prompts: list[list[int]]) -> list[Sequence]:
        return self._decoded([self._sequence(policy, prompt) for prompt in prompts])

    def _gathered(self) -> None:
        asked, self._asked = self._asked, []
        self._decoded([sequence for sequence, _ in asked])
        for sequence, future in asked:
            if not future.done():
                future.set_result(sequence)

    def _decoded(self, sequences: list[Sequence]) -> list[Sequence]:
        for sequence in sequences:
            self._core.scheduler.add(sequence)
        while self._core.scheduler.has_work:
            self._core.step()
        return sequences

    def _sequence(self, policy: str, prompt: list[int]) -> Sequence:
        return Sequence(
            id="bench",
            prompt=prompt,
            sampling=SamplingParams(temperature=1.0, seed=self._luck.getrandbits(32)),
            identity=AdapterIdentity(name=policy, digest="0" * 64),
            adapter=self._weights(policy),
            stop_ids=frozenset({TURN_END}),
            max_new=REPLY_MAX,
            deadline_at_s=float("inf"),
        )

    def _weights(self, policy: str) -> AdapterWeights:
        if policy not in self._versions:
            named = parse_engine_name(policy)
            if named is None:
                raise ValueError(f"{policy} names no version")
            self._versions[policy] = self._reader.read(self._root / adapter_path(named.run_id, named.version), digest=None)
        return self._versions[policy]


class TrainerMachine:
    """The trainer's service, in a machine that takes its time for a step."""

    def __init__(self, pool: Pool) -> None:
        self._desk = Desk(pool, base_model="tiny", window_s=0.0)
        self._served = create_app(self._desk)

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"].endswith("/steps"):
            await asyncio.sleep(TRAIN_S)
        await self._served(scope, receive, send)

    async def packing(self) -> None:
        await self._desk.loop.run()


class LearningRun:
    def __init__(self, bound: int, seed: int, root: Path) -> None:
        pool = new_pool(root, pack_tokens=4096)
        self._luck = random.Random(seed)
        self._sampler = Sampler(root, pool.base_digest, seed)
        self._machine = TrainerMachine(pool)
        self._run = ScriptedRun(config(bound, seed), root, self._play)
        self._run.trainer = self._machine

    async def reward(self) -> float:
        """Of the last version. Raises Disagreement where the run has not trained on all its samples."""
        packing = asyncio.create_task(self._machine.packing())
        try:
            finish = await self._run.attempt()
        finally:
            packing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await packing
        trained = sum(row.trained for row in self._run.rows())
        if finish.outcome != "completed" or trained < STEPS * BATCH:
            raise Disagreement(f"the run ended as {finish.outcome} with {trained} samples: {finish.message}")
        return self._score(f"{self._run.spec.subject_id}.v{STEPS}")

    async def _play(self, request: RolloutRequest, environment: ScriptedEnvironment) -> RolloutEnd:
        digits = TASK_DIGITS[request.task]
        prompt = prompt_about(digits)
        said = await self._sampler.answer(request.policy, prompt)
        if not await environment.take(request.rollout_id, self._luck.lognormvariate(0.0, 1.0)):
            return RolloutEnd(state="cancelled")
        call = {"prompt_ids": tuple(prompt), "token_ids": tuple(said.token_ids), "logprobs": tuple(said.logprobs)}
        counts = {"input_tokens": len(prompt), "output_tokens": len(said.token_ids)}
        return good(environment.say(request, **call, **counts), reward_for(said.token_ids, digits))

    def _score(self, policy: str) -> float:
        asked = DIGITS * TRIES
        said = self._sampler.answers(policy, [prompt_about(digits) for digits in asked])
        return sum(reward_for(one.token_ids, digits) for one, digits in zip(said, asked, strict=True)) / len(asked)


@cache
def learnt(bound: int, seed: int) -> float:
    with tempfile.TemporaryDirectory() as root:
        return run_virtually(LearningRun(bound, seed, Path(root)).reward())


def kept(bound: int, trials: int) -> list[float]:
    return [learnt(bound, seed) / learnt(0, seed) for seed in range(trials)]


def rows() -> list[Row]:
    return [
        Row(
            f"P12.{bound}",
            f"reward after {STEPS} steps of {BATCH} samples, bound {bound} ÷ bound 0, lognormal(1) latency on a virtual clock",
            "itself, bound 0",
            Bound("higher", 0.97, 1.0),
            lambda trials, bound=bound: kept(bound, trials),
        )
        for bound in BOUNDS
    ]
