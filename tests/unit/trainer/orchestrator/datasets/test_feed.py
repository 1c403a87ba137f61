"""What datasets put into a batch: shares, epochs, and a cursor that neither repeats nor skips a row."""

import io
import json
from collections import Counter

import pytest

from trainer.contracts.catalogue import load_catalogue, model_folder
from trainer.contracts.run_config import RunConfig
from trainer.inference.text import TextCodec
from trainer.orchestrator.datasets import feed as dataset_feed
from trainer.orchestrator.datasets.feed import DatasetFeed
from trainer.orchestrator.datasets.rendering import RowRenderer
from trainer.orchestrator.datasets.rows import DatasetRows

CODEC = TextCodec(model_folder(load_catalogue()["tiny"].tokenizer))


def config_of(datasets: list[dict], **changes) -> RunConfig:
    return RunConfig.model_validate({"model": {"name": "tiny"}, "batch_size": 4, "datasets": datasets} | changes)


def feed_of(config: RunConfig, rows_count: int = 10) -> DatasetFeed:
    datasets = []
    for ref in config.datasets:
        lines = "".join(json.dumps({"text": f"{ref.id}{number}"}) + "\n" for number in range(1, rows_count + 1))
        renderer = RowRenderer(CODEC, context_tokens=64)
        datasets.append(DatasetRows(ref.id, ref, "text", io.BytesIO(lines.encode()), renderer, seed=config.seed))
        datasets[-1].check()
    return DatasetFeed(config, datasets)


def lines_of(feed: DatasetFeed, step: int) -> list[str]:
    return [sample.group_id for sample in feed.take(step).samples]


def test_each_epoch_takes_every_row_once_in_an_order_of_its_own():
    feed = feed_of(config_of([{"id": "a"}]))
    taken = [place for step in range(1, 6) for place in lines_of(feed, step)]
    first, second = taken[:10], taken[10:]
    assert sorted(first) == sorted(f"a/0/{line}" for line in range(1, 11))
    assert sorted(second) == sorted(f"a/1/{line}" for line in range(1, 11))
    assert [place[4:] for place in first] != [place[4:] for place in second] != [str(line) for line in range(1, 11)]


def test_without_shuffling_rows_come_in_the_files_order():
    feed = feed_of(config_of([{"id": "a", "shuffle": False}]))
    assert lines_of(feed, 1) == ["a/0/1", "a/0/2", "a/0/3", "a/0/4"]


def test_a_run_goes_on_at_the_very_row():
    config = config_of([{"id": "a", "ratio": 3.0}, {"id": "b"}])
    whole, first, later = feed_of(config), feed_of(config), feed_of(config)
    expected = [lines_of(whole, step) for step in range(1, 7)]
    begun = [lines_of(first, step) for step in range(1, 4)]
    later.resume_at(first.cursors())
    assert begun + [lines_of(later, step) for step in range(4, 7)] == expected


def test_epochs_end_and_the_last_batch_is_what_is_left():
    feed = feed_of(config_of([{"id": "a", "epochs": 1}]))
    sizes = []
    while not feed.is_over:
        sizes.append(len(feed.take(len(sizes) + 1).samples))
    assert sizes == [4, 4, 2]


@pytest.mark.parametrize(
    ("datasets", "steps_max", "steps"),
    [
        ([{"id": "a", "epochs": 1}], 100, 3),
        ([{"id": "a", "epochs": 3}], 100, 8),
        ([{"id": "a", "epochs": 3}], 5, 5),
        ([{"id": "a", "epochs": 2}, {"id": "b", "epochs": 1, "ratio": 0.4}, {"id": "c", "epochs": 1, "ratio": 3.0}], 100, None),
    ],
)
def test_the_steps_that_are_counted_ahead_are_those_that_are_taken(datasets: list[dict], steps_max: int, steps: int | None):
    feed = feed_of(config_of(datasets))
    counted, taken = feed.steps_until_over(steps_max), 0
    while not feed.is_over and taken < steps_max:
        taken += 1
        feed.take(taken)
    assert counted == taken == (steps or taken)


def test_no_steps_are_counted_ahead_where_nothing_ends_the_run_early(monkeypatch: pytest.MonkeyPatch):
    endless = [{"id": "a", "epochs": 1}, {"id": "b"}]
    mixed = config_of([{"id": "a", "epochs": 1}], environments=[{"id": "acme/digits"}], batch_size=8)
    assert [feed_of(config).steps_until_over(50) for config in (config_of(endless), mixed)] == [50, 50]
    monkeypatch.setattr(dataset_feed, "STEP_TOKENS_MAX", 5)
    assert feed_of(config_of([{"id": "a", "epochs": 1}])).steps_until_over(50) == 50, "rows too long to know"


def test_a_dataset_that_is_through_leaves_its_places_to_the_others():
    feed = feed_of(config_of([{"id": "a", "epochs": 1}, {"id": "b"}]), rows_count=2)
    found = [Counter(place[0] for place in lines_of(feed, step)) for step in (1, 2)]
    assert found == [{"a": 2, "b": 2}, {"b": 4}] and not feed.is_over


def test_places_that_do_not_divide_go_round():
    feed = feed_of(config_of([{"id": "a"}, {"id": "b"}, {"id": "c"}]))
    taken = Counter(place[0] for step in range(1, 4) for place in lines_of(feed, step))
    assert taken == {"a": 4, "b": 4, "c": 4}


@pytest.mark.parametrize(("ratio", "rows"), [(1.0, 4), (3.0, 6), (100.0, 7), (0.01, 1)])
def test_rows_share_a_batch_with_rollouts(ratio: float, rows: int):
    environments = [{"id": "acme/digits"}]
    config = config_of([{"id": "a", "ratio": ratio}], environments=environments, batch_size=8)
    assert (len(lines_of(feed_of(config), 1)), config.rollouts_per_batch()) == (rows, 8 - rows)


def test_a_step_takes_no_more_tokens_than_it_may(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(dataset_feed, "STEP_TOKENS_MAX", 5)
    feed = feed_of(config_of([{"id": "a", "shuffle": False}]))
    assert [lines_of(feed, step) for step in (1, 2)] == [["a/0/1", "a/0/2"], ["a/0/3", "a/0/4"]]


def test_a_sample_is_ce_alone_and_the_figures_count_it():
    taken = feed_of(config_of([{"id": "a", "shuffle": False}], batch_size=1)).take(3)
    (sample,) = taken.samples
    assert sample.token_ids == [258, 97, 49, 258] and sample.ce_weights == [0.0, 1.0, 1.0, 1.0]
    assert not any([*sample.mask, *sample.rl_weights]) and set(sample.policy_versions) == {2}
    assert taken.metrics == {"dataset_rows/a": 1, "dataset_tokens/a": 4, "dataset_epochs/a": 0.1, "dataset_dropped/a": 0}
