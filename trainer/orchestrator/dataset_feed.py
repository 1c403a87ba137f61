"""What the datasets of a run put into each batch, beside the rollouts of its environments.

Knows shares of a batch and the cursors of the datasets. Refuses to know rollouts, staleness and algorithms: a row waits for
nobody, so it is taken when its batch is cut and never before. That makes the cursor exact: what a step's record counts is what
that step and those before it have trained on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainer.contracts.run_config import RunConfig
from trainer.contracts.samples import TrainSample
from trainer.orchestrator.dataset_rows import DatasetRows, TakenRow
from trainer.orchestrator.mixture import Mixture
from trainer.orchestrator.row_rendering import RowStream

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
        self._places = config.batch_size - config.rollouts_per_batch()

    @property
    def is_over(self) -> bool:
        """Whether no batch can be filled any more: every dataset has been through its epochs, and nothing else is learnt."""
        return self._is_alone and not self._live()

    def cursors(self) -> dict[str, int]:
        return {dataset.name: dataset.position for dataset in self._datasets}

    def resume_at(self, cursors: Mapping[str, int]) -> None:
        for dataset in self._datasets:
            dataset.position = cursors.get(dataset.name, 0)

    def take(self, step: int) -> TakenRows:
        """The rows of batch `step`. The first row is taken whatever its length."""
        shares = self._shares(step)
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
            }
        return TakenRows(samples, metrics)

    def _live(self) -> list[DatasetRows]:
        return [dataset for dataset in self._datasets if dataset.left != 0]

    def _shares(self, step: int) -> dict[str, int]:
        """Places of the batch by dataset. What does not divide evenly goes round, the same way at each step on each machine."""
        ratios = {dataset.name: dataset.ref.ratio for dataset in self._live()}
        if not ratios:
            return {}
        total = sum(ratios.values())
        exact = {name: self._places * ratio / total for name, ratio in ratios.items()}
        counts = {name: int(share + 1e-9) for name, share in exact.items()}
        rest = self._places - sum(counts.values())
        if rest:
            turns = Mixture({name: max(share - counts[name], 1e-12) for name, share in exact.items()})
            turns.skip((step - 1) * rest)
            for _ in range(rest):
                counts[turns.next()] += 1
        return counts


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
