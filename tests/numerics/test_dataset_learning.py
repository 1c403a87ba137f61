"""Rows of a dataset, from the file to the adapter: rows that were held out become likelier, and a resumed run is the same run."""

import io
import json
from pathlib import Path
from statistics import fmean

import pytest
import torch

from tests.fixtures.places import REPOSITORY
from tests.numerics.curves.reading import token_logprobs
from tests.numerics.recorded import batch, new_pool, run_id, spec, step_together
from trainer.contracts.catalogue import load_catalogue, model_folder
from trainer.contracts.datasets import DatasetKind, parse_row
from trainer.contracts.run_config import RunConfig
from trainer.contracts.training import OptimizerSpec
from trainer.inference.text import TextCodec
from trainer.orchestrator.datasets.feed import DatasetFeed
from trainer.orchestrator.datasets.rendering import RowRenderer
from trainer.orchestrator.datasets.rows import DatasetRows

RUN = run_id("rows")
STEPS = 12
RENDERER = RowRenderer(TextCodec(model_folder(load_catalogue()["tiny"].tokenizer)), context_tokens=256)


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def feed_of(lines: list[bytes], kind: DatasetKind) -> DatasetFeed:
    config = RunConfig.model_validate({"model": {"name": "tiny"}, "batch_size": 8, "datasets": [{"id": "d"}]})
    rows = DatasetRows("d", config.datasets[0], kind, io.BytesIO(b"".join(lines)), RENDERER, seed=config.seed)
    rows.check()
    return DatasetFeed(config, [rows])


def pool_in(folder: Path):
    pool = new_pool(folder)
    pool.open(RUN, spec(optimizer=OptimizerSpec(learning_rate=5e-3, warmup_steps=2, total_steps=STEPS)))
    return pool


def mean_logprob(pool, lines: list[bytes]) -> float:
    """Of the learnt tokens of rows."""
    streams = [stream for line in lines for stream in RENDERER.streams(parse_row(line))]
    told = token_logprobs(pool, {RUN: [stream.token_ids for stream in streams]})[RUN]
    pairs = [pair for stream, row in zip(streams, told, strict=True) for pair in zip(stream.learnt, row, strict=True)]
    return fmean(value for learnt, value in pairs if learnt)


@pytest.mark.parametrize(("name", "kind"), [("sums", "chat"), ("notes", "text")])
def test_rows_that_were_held_out_become_likelier(tmp_path: Path, name: str, kind: DatasetKind):
    lines = (REPOSITORY / "examples" / "datasets" / f"{name}.jsonl").read_bytes().splitlines(keepends=True)
    taught, held_out = lines[:-8], lines[-8:]
    feed, pool = feed_of(taught, kind), pool_in(tmp_path)
    before = mean_logprob(pool, held_out)
    for step in range(1, STEPS + 1):
        result = step_together(pool, [batch(RUN, step, feed.take(step).samples)])[0]
    assert mean_logprob(pool, held_out) > before + 0.2
    assert result.metrics["ce_loss"] == pytest.approx(result.metrics["loss"])


def test_the_examples_are_datasets_that_the_tiny_model_takes():
    for path in sorted((REPOSITORY / "examples" / "datasets").glob("*.jsonl")):
        for line in path.read_bytes().splitlines():
            assert RENDERER.streams(parse_row(line)), json.loads(line)
