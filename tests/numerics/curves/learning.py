"""A plan carried out: its seeds learn side by side in one trainer, through the orchestrator's own parts (branches, group,
algorithm, batch, rows of a dataset).

Knows plans and objectives. Refuses to know what is made of the figures.
"""

import asyncio
import io
import random
import tempfile
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import torch

from tests.factories.rollouts import make_group, make_outcome
from tests.fixtures.places import REPOSITORY
from tests.numerics.curves.plans import SEEDS, Objective, Plan
from tests.numerics.curves.playing import HELD_OUT_REPEAT, SUM, Played, Task, drawn, held_out, play
from tests.numerics.curves.policies import parameters_of
from tests.numerics.curves.reading import Reader, token_logprobs
from tests.numerics.recorded import new_pool, run_id, spec, step_together
from trainer.algorithms import Algorithm, algorithm_for
from trainer.contracts.catalogue import load_catalogue, model_folder
from trainer.contracts.run_config import RunConfig
from trainer.contracts.samples import TrainBatch
from trainer.contracts.training import LossSpec, OptimizerSpec
from trainer.core.pool import Pool
from trainer.inference.text import TextCodec
from trainer.orchestrator.datasets.feed import DatasetFeed
from trainer.orchestrator.datasets.rendering import RowRenderer
from trainer.orchestrator.datasets.rows import DatasetRows
from trainer.orchestrator.groups.views import GroupStudy
from trainer.orchestrator.rollouts.rollout import Group
from trainer.orchestrator.steps.batches import cut_batch

TEACHER = run_id("teacher")
ROWS_HELD_OUT = 16
Pupils = Mapping[str, Mapping[Task, Algorithm]]


class Lesson(NamedTuple):
    batch: TrainBatch
    rewards: list[float]


@dataclass
class Shown:
    """One objective of a plan. `steps[seed][i]` is measured on the batch of step i + 1 before it is learnt, `before` and `after`
    on what no seed is trained on."""

    steps: list[list[float]]
    before: list[float]
    after: list[float]

    @property
    def gains(self) -> list[float]:
        return [late - early for early, late in zip(self.before, self.after, strict=True)]


class RolloutSource:
    """Rollouts that each run, or the speaker for all of them, plays. `pupils` says for each run which tasks its environments
    are, and the algorithm of each."""

    def __init__(self, pool: Pool, pupils: Pupils, *, groups: int, group_size: int, turns: int = 1, speaker: str | None = None):
        self._pool, self._pupils, self._speaker = pool, pupils, speaker
        self._groups, self._group_size, self._turns = groups, group_size, turns
        self._draws = {run: random.Random(run) for run in pupils}
        self._generator = torch.Generator().manual_seed(0)

    async def lessons(self, step: int) -> dict[str, Lesson]:
        draws = self._draws.items()
        asked = {run: drawn(rng, list(self._pupils[run]), self._groups, self._group_size) for run, rng in draws}
        return await self._played(step, asked, self._group_size, self._generator)

    async def held_out(self) -> dict[str, Lesson]:
        asked = {run: held_out(list(tasks)) for run, tasks in self._pupils.items()}
        return await self._played(1, asked, HELD_OUT_REPEAT, torch.Generator().manual_seed(99))

    async def _played(self, step: int, asked: dict[str, list[Played]], group_size: int, generator: torch.Generator):
        play(self._pool, asked, generator, turns=self._turns, speaker=self._speaker)
        ways = [self._lesson(run, step, rollouts, group_size) for run, rollouts in asked.items()]
        return dict(zip(asked, await asyncio.gather(*ways), strict=True))

    async def _lesson(self, run: str, step: int, rollouts: list[Played], group_size: int) -> Lesson:
        """The batch that the orchestrator would cut of these rollouts."""
        starts = range(0, len(rollouts), group_size)
        ways = [self._scored(run, step, rollouts[start : start + group_size]) for start in starts]
        return Lesson(cut_batch(run, step, await asyncio.gather(*ways)).batch, [rollout.reward for rollout in rollouts])

    async def _scored(self, run: str, step: int, members: list[Played]) -> Group:
        task = members[0].task
        group = make_group(step - 1, len(members), task.name)
        group.policy = run
        for rollout, played in zip(group.rollouts, members, strict=True):
            rollout.outcome = make_outcome(played.reward, calls=played.calls)
        study = GroupStudy(group, has_group_rewards=False)
        study.teach(await self._pupils[run][task].score(study.view()))
        return group


def source_of(plan: Plan, pool: Pool, runs: list[str]) -> "RolloutSource | RowSource":
    if plan.dataset:
        return RowSource(plan, runs)
    reference = Reader(pool).of(TEACHER if plan.algorithm == "opd" else None)
    pupils = {run: {SUM: algorithm_for(plan.config(), reference)} for run in runs}
    speaker = TEACHER if plan.algorithm == "sft" else None
    return RolloutSource(pool, pupils, groups=plan.groups, group_size=plan.group_size, turns=plan.turns, speaker=speaker)


class RowSource:
    """Rows of an example dataset; each run has its own order. The last rows are held out."""

    def __init__(self, plan: Plan, runs: list[str]) -> None:
        lines = (REPOSITORY / "examples" / "datasets" / plan.dataset).read_bytes().splitlines(keepends=True)
        size = plan.groups * plan.group_size
        self._feeds = {run: _feed(lines[:-ROWS_HELD_OUT], size, seed) for seed, run in enumerate(runs)}
        self._held_out = {run: _feed(lines[-ROWS_HELD_OUT:], ROWS_HELD_OUT, seed) for seed, run in enumerate(runs)}

    async def lessons(self, step: int) -> dict[str, Lesson]:
        return {run: _rows(run, step, feed) for run, feed in self._feeds.items()}

    async def held_out(self) -> dict[str, Lesson]:
        return {run: _rows(run, 1, feed) for run, feed in self._held_out.items()}


def _feed(lines: list[bytes], size: int, seed: int) -> DatasetFeed:
    raw = {"model": {"name": "tiny"}, "batch_size": size, "seed": seed, "datasets": [{"id": "rows"}]}
    config = RunConfig.model_validate(raw)
    renderer = RowRenderer(TextCodec(model_folder(load_catalogue()["tiny"].tokenizer)), context_tokens=256)
    rows = DatasetRows("rows", config.datasets[0], "chat", io.BytesIO(b"".join(lines)), renderer, seed=seed)
    rows.check()
    return DatasetFeed(config, [rows])


def _rows(run: str, step: int, feed: DatasetFeed) -> Lesson:
    return Lesson(cut_batch(run, step, [], feed.take(step).samples).batch, [])


def open_runs(pool: Pool, plan: Plan, seeds: int) -> list[str]:
    """The plan's runs, and its teacher where it has one."""
    runs = [run_id(f"{plan.name.replace('_', '').replace('-', '')}{seed}") for seed in range(seeds)]
    optimizer = OptimizerSpec(learning_rate=plan.learning_rate, warmup_steps=2)
    for seed, run in enumerate(runs):
        pool.open(run, spec(seed=seed, optimizer=optimizer, loss=LossSpec(kind=plan.loss)))
        if plan.beginning:
            pool.tenant(run).adapter.params_P.copy_(parameters_of(plan.beginning))
    if plan.teacher:
        pool.open(TEACHER, spec())
        pool.tenant(TEACHER).adapter.params_P.copy_(parameters_of(plan.teacher))
    return runs


async def learn(plan: Plan, seeds: int = SEEDS) -> dict[Objective, Shown]:
    """What each objective of the plan does, step by step, and before and after on what was held out."""
    with tempfile.TemporaryDirectory() as root:
        pool = new_pool(Path(root), pack_tokens=4096)
        runs = open_runs(pool, plan, seeds)
        source = source_of(plan, pool, runs)
        before = measured(plan, pool, await source.held_out())
        steps, waiting = [], deque()
        for step in range(1, plan.steps + 1):
            while len(waiting) <= plan.lag:
                waiting.append(await source.lessons(step))
            lessons = waiting.popleft()
            steps.append(measured(plan, pool, lessons))
            step_together(pool, [lesson.batch.model_copy(update={"step": step}) for lesson in lessons.values()])
        after = measured(plan, pool, await source.held_out())
    curves = {one: [list(line) for line in zip(*(values[one] for values in steps), strict=True)] for one in plan.objectives}
    return {one: Shown(curves[one], before[one], after[one]) for one in plan.objectives}


def measured(plan: Plan, pool: Pool, lessons: dict[str, Lesson]) -> dict[Objective, list[float]]:
    """Each objective's value per run, by the policies as they are now."""
    return {objective: MEASURES[objective](pool, lessons) for objective in plan.objectives}


def _reward(pool: Pool, lessons: dict[str, Lesson]) -> list[float]:
    return [fmean(lesson.rewards) for lesson in lessons.values()]


def _agreement(pool: Pool, lessons: dict[str, Lesson]) -> list[float]:
    values = []
    for lesson in lessons.values():
        streams = [(s.ref_kl_weights or [], s.ref_logprobs or [], s.logprobs) for s in lesson.batch.samples]
        values.append(fmean(sum(ref - own for weight, ref, own in zip(*rows, strict=True) if weight) for rows in streams))
    return values


def _likelihood(pool: Pool, lessons: dict[str, Lesson]) -> list[float]:
    told = token_logprobs(pool, {run: [s.token_ids for s in lesson.batch.samples] for run, lesson in lessons.items()})
    values = []
    for run, lesson in lessons.items():
        rows = [(s.ce_weights or [], row) for s, row in zip(lesson.batch.samples, told[run], strict=True)]
        values.append(fmean(sum(value for weight, value in zip(*one, strict=True) if weight) for one in rows))
    return values


MEASURES: dict[Objective, Callable[[Pool, dict[str, Lesson]], list[float]]] = {
    "reward": _reward,
    "agreement": _agreement,
    "likelihood": _likelihood,
}
