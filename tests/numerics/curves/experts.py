"""Two experts by reinforcement learning, distilled into one adapter, against one run on both tasks: at equal tokens.

Knows both ways and what each has cost. Refuses to know which way ought to win. Tokens are those that the trainer trained on,
which is what is billed; what was sampled and what the teachers read is counted beside them.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import torch

from tests.numerics.curves.learning import Pupils, RolloutSource
from tests.numerics.curves.plans import SEEDS
from tests.numerics.curves.playing import Task, held_out, play
from tests.numerics.curves.reading import Reader
from tests.numerics.recorded import new_pool, run_id, spec, step_together
from trainer.algorithms import algorithm_for
from trainer.contracts.run_config import AlgorithmConfig
from trainer.contracts.samples import TrainBatch
from trainer.contracts.training import OptimizerSpec
from trainer.core.pool import Pool

PLAIN = Task("plain", "sum")
LINED = Task("lined", "max", system="Answer briefly.")
TASKS = (PLAIN, LINED)
GROUPS, GROUP_SIZE = 4, 8


@dataclass(frozen=True)
class Sizes:
    """The joint run makes as many steps as both experts and the distillation together."""

    expert_steps: int = 8
    distillation_steps: int = 16
    learning_rate: float = 5e-3

    @property
    def joint_steps(self) -> int:
        return 2 * self.expert_steps + self.distillation_steps


@dataclass(frozen=True)
class Tokens:
    trained: int = 0
    sampled: int = 0
    read_by_teachers: int = 0

    @classmethod
    def of(cls, batch: TrainBatch) -> "Tokens":
        trained = sum(len(sample.token_ids) for sample in batch.samples)
        read = sum(len(sample.token_ids) for sample in batch.samples if sample.ref_logprobs)
        return cls(trained, sum(sum(sample.mask) for sample in batch.samples), read)

    def __add__(self, other: "Tokens") -> "Tokens":
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return Tokens(*(mine + theirs for mine, theirs in pairs))


Rewards = dict[str, float]
"""Mean held-out reward by task."""


@dataclass(frozen=True)
class SeedResult:
    """`joint_early` is the joint run after as many steps as the distilled adapter has made itself."""

    base: Rewards
    experts: Rewards
    distilled: Rewards
    joint: Rewards
    joint_early: Rewards
    experts_tokens: Tokens
    distillation_tokens: Tokens
    joint_tokens: Tokens
    joint_early_tokens: Tokens


class Contest:
    """The runs of all seeds in one trainer. A run is called by its role and its seed."""

    def __init__(self, pool: Pool, sizes: Sizes, seeds: int) -> None:
        self._pool, self._sizes, self._seeds = pool, sizes, range(seeds)
        self._tokens: dict[str, Tokens] = {}
        for role in ("plain", "lined", "distilled", "joint"):
            for seed, run in enumerate(self._runs(role)):
                optimizer = OptimizerSpec(learning_rate=sizes.learning_rate, warmup_steps=2)
                self._pool.open(run, spec(seed=seed, optimizer=optimizer))
                self._tokens[run] = Tokens()

    async def results(self) -> list[SeedResult]:
        grpo, sizes = algorithm_for(AlgorithmConfig(id="grpo")), self._sizes
        base = self._rewards("joint")
        await self._train({run: {task: grpo} for task in TASKS for run in self._runs(task.name)}, sizes.expert_steps)
        await self._train(self._lessons_of_experts(), sizes.distillation_steps)
        early: list[tuple[Rewards, Tokens]] = []

        def look(step: int) -> None:
            if step == sizes.distillation_steps:
                early.extend(zip(self._rewards("joint"), self._spent("joint"), strict=True))

        await self._train({run: dict.fromkeys(TASKS, grpo) for run in self._runs("joint")}, sizes.joint_steps, look)
        experts, tokens = self._experts()
        ways = zip(self._rewards("distilled"), self._rewards("joint"), strict=True)
        spent = zip(self._spent("distilled"), self._spent("joint"), strict=True)
        return [
            SeedResult(base[seed], experts[seed], *rewards, early[seed][0], tokens[seed], *costs, early[seed][1])
            for seed, (rewards, costs) in enumerate(zip(ways, spent, strict=True))
        ]

    def _experts(self) -> tuple[list[Rewards], list[Tokens]]:
        """Each expert's reward on its own task, and what both have cost, per seed."""
        rewards, spent = ([what(task.name) for task in TASKS] for what in (self._rewards, self._spent))
        own = [
            {task.name: mine[task.name] for task, mine in zip(TASKS, pair, strict=True)} for pair in zip(*rewards, strict=True)
        ]
        return own, [first + second for first, second in zip(*spent, strict=True)]

    def _runs(self, role: str) -> list[str]:
        return [run_id(f"{role}{seed}") for seed in self._seeds]

    def _lessons_of_experts(self) -> Pupils:
        """Each pupil has its seed's experts as teachers, one per environment."""
        opd, reader = AlgorithmConfig(id="opd"), Reader(self._pool)
        teachers = {task: self._runs(task.name) for task in TASKS}
        return {
            run: {task: algorithm_for(opd, reader.of(teachers[task][seed])) for task in TASKS}
            for seed, run in enumerate(self._runs("distilled"))
        }

    async def _train(self, pupils: Pupils, steps: int, at: Callable[[int], None] = lambda step: None) -> None:
        source = RolloutSource(self._pool, pupils, groups=GROUPS, group_size=GROUP_SIZE)
        for step in range(1, steps + 1):
            lessons = await source.lessons(step)
            step_together(self._pool, [lesson.batch for lesson in lessons.values()])
            for run, lesson in lessons.items():
                self._tokens[run] += Tokens.of(lesson.batch)
            at(step)

    def _rewards(self, role: str) -> list[Rewards]:
        """Held out, per seed, on both tasks."""
        asked = {run: held_out(TASKS) for run in self._runs(role)}
        play(self._pool, asked, torch.Generator().manual_seed(99))
        return [
            {task.name: fmean(one.reward for one in rollouts if one.task == task) for task in TASKS}
            for rollouts in asked.values()
        ]

    def _spent(self, role: str) -> list[Tokens]:
        return [self._tokens[run] for run in self._runs(role)]


async def contest(sizes: Sizes, seeds: int = SEEDS) -> list[SeedResult]:
    """Both ways from the same base, seed by seed."""
    with tempfile.TemporaryDirectory() as root:
        pool = new_pool(Path(root), pack_tokens=4096, slots=4 * seeds)
        return await Contest(pool, sizes, seeds).results()
