"""What the datasets of a run put into each batch, beside the rollouts of its environments.

Knows shares of a batch and the cursors of the datasets. Refuses to know rollouts, staleness and algorithms: a row waits for
nobody, so it is taken when its batch is cut and never before. That makes the cursor exact: what a step's record counts is what
that step and those before it have trained on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainer.contracts.run_config import RunConfig
from trainer.contracts.samples import TrainSample
from trainer.orchestrator.datasets.rendering import RowStream
from trainer.orchestrator.datasets.rows import DatasetRows, TakenRow
from trainer.orchestrator.environments.mixture import Mixture

STEP_TOKENS_MAX = 2**20
"""Tokens of rows in one step; what is beyond is the next step's."""


@dataclass(frozen=True, slots=True)
class TakenRows:
    samples: list[TrainSample]
    metrics: dict[str, float]


class DatasetFeed:
    def __init__(self, config: RunConfig, datasets: Sequence[DatasetRows]):
        self._datasets = datasets
        self._is_alone = not config.environments
        self._turns = _Turns()
        self._places = config.batch_size - config.rollouts_per_batch()

    @property
    def is_over(self) -> bool:
        """Whether no batch can be filled any more: every dataset has been through its epochs, and nothing else is learnt."""
        return self._is_alone and all(rows == 0 for rows in self._left().values())

    def cursors(self) -> dict[str, int]:
        return {dataset.name: dataset.position for dataset in self._datasets}

    def resume_at(self, cursors: Mapping[str, int]) -> None:
        for dataset in self._datasets:
            dataset.position = cursors.get(dataset.name, 0)

    def take(self, step: int) -> TakenRows:
        """The rows of batch `step`. The first row is taken whatever its length."""
        shares = self._shares(step, self._left())
        samples: list[TrainSample] = []
        metrics: dict[str, float] = {}
        tokens = 0
        for dataset in self._datasets:
            rows, before = 0, tokens
            while rows < shares.get(dataset.name, 0) and dataset.left != 0 and tokens < STEP_TOKENS_MAX:
                made = _samples(dataset.name, step, dataset.next())
                tokens += sum(len(sample.token_ids) for sample in made)
                samples += made
                rows += 1
            metrics |= {
                f"dataset_rows/{dataset.name}": rows,
                f"dataset_tokens/{dataset.name}": tokens - before,
                f"dataset_epochs/{dataset.name}": dataset.epochs_done,
                f"dataset_dropped/{dataset.name}": dataset.dropped,
            }
        return TakenRows(samples, metrics)

    def steps_until_over(self, steps_max: int) -> int:
        """How many steps the run has from its first one on, counted ahead from the rows: `steps_max` where no epochs end it
        earlier, or where its rows are so long that a step may be cut short of them."""
        row_tokens_max = max((dataset.tokens_max for dataset in self._datasets), default=0)
        left = {dataset.name: rows for dataset in self._datasets if (rows := dataset.rows_in_all) is not None}
        is_endless = len(left) < len(self._datasets) or row_tokens_max * self._places > STEP_TOKENS_MAX
        if not self._is_alone or is_endless:
            return steps_max
        for step in range(1, steps_max):
            left = {name: max(0, left[name] - rows) for name, rows in (dict.fromkeys(left, 0) | self._shares(step, left)).items()}
            if not any(left.values()):
                return step
        return steps_max

    def _left(self) -> dict[str, int | None]:
        return {dataset.name: dataset.left for dataset in self._datasets}

    def _shares(self, step: int, left: Mapping[str, int | None]) -> dict[str, int]:
        """Places of the batch by dataset that has rows left. What does not divide evenly goes round, the same way at each step on
        each machine."""
        ratios = {dataset.name: dataset.ref.ratio for dataset in self._datasets if left[dataset.name] != 0}
        if not ratios:
            return {}
        total = sum(ratios.values())
        exact = {name: self._places * ratio / total for name, ratio in ratios.items()}
        counts = {name: int(share + 1e-9) for name, share in exact.items()}
        rest = self._places - sum(counts.values())
        if rest:
            shares = {name: max(share - counts[name], 1e-12) for name, share in exact.items()}
            for name in self._turns.take(shares, rest, before=(step - 1) * rest):
                counts[name] += 1
        return counts


class _Turns:
    """Whose turn it is, at any place of the sequence that the shares alone decide. Going on from the last place costs nothing."""

    def __init__(self) -> None:
        self._shares: dict[str, float] = {}
        self._taken = 0
        self._mixture = Mixture({})

    def take(self, shares: dict[str, float], count: int, *, before: int) -> list[str]:
        """The next `count` after the first `before` ones."""
        if shares != self._shares or before < self._taken:
            self._shares, self._taken, self._mixture = shares, 0, Mixture(shares)
        self._mixture.skip(before - self._taken)
        self._taken = before + count
        return [self._mixture.next() for _ in range(count)]


def _samples(dataset: str, step: int, row: TakenRow) -> list[TrainSample]:
    """`ce` on what is learnt, no sampler behind any token. All streams of a row are one group."""
    group_id = f"{dataset}/{row.epoch}/{row.line}"
    return [_sample(dataset, step, group_id, stream) for stream in row.streams]


def _sample(dataset: str, step: int, group_id: str, stream: RowStream) -> TrainSample:
    size = len(stream.token_ids)
    return TrainSample(
        token_ids=stream.token_ids,
        mask=[False] * size,
        logprobs=[0.0] * size,
        temperatures=[1.0] * size,
        policy_versions=[step - 1] * size,
        rl_weights=[0.0] * size,
        ce_weights=[float(learnt) for learnt in stream.learnt],
        group_id=group_id,
        environment=dataset,
    )
