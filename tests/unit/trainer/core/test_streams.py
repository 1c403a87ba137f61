"""What a batch must be, and that every way of being wrong is named."""

import pytest
import torch

from trainer.contracts.samples import TrainBatch, TrainSample
from trainer.core.errors import BadBatch
from trainer.core.losses import TALLY, metrics_of
from trainer.core.streams import read_batch, staleness_of
from trainer.orchestrator.steps.metrics import cut_metrics

RUN = "c" + "a" * 24


def sample(**changes) -> TrainSample:
    plain = {
        "token_ids": [1, 2, 3, 4],
        "mask": [False, False, True, True],
        "logprobs": [0.0, 0.0, -1.0, -2.0],
        "temperatures": [1.0] * 4,
        "policy_versions": [0] * 4,
        "rl_weights": [0.0, 0.0, 1.0, 1.0],
        "advantages": [0.0, 0.0, 0.5, 0.5],
    }
    return TrainSample(**(plain | changes))


def read(*samples, step=1, **header):
    batch = TrainBatch(run_id=RUN, step=step, samples=list(samples), **({"n_rl": 2 * len(samples)} | header))
    return read_batch(batch, vocabulary_size=10, context_tokens=8, dtype=torch.float64)


def test_only_weighted_tokens_are_kept():
    streams = read(sample(rl_weights=[0.0, 0.0, 0.0, 1.0], ce_weights=[0.0, 0.3, 0.0, 0.0]), n_rl=1, n_ce=1)
    (kept,) = streams.samples
    assert kept.trained_P.tolist() == [1, 3]
    assert kept.signals.sampler_logprobs.tolist() == [0.0, -2.0]
    assert kept.signals.ce_weights.tolist() == [0.3, 0.0]
    assert streams.tokens == 4


def test_a_sample_that_trains_nothing_is_neither_computed_nor_billed():
    streams = read(sample(), sample(rl_weights=[0.0] * 4))
    assert len(streams.samples) == 1 and streams.tokens == 4


def test_the_header_may_count_more_than_is_left():
    assert read(sample(), n_rl=50).denominators.rl == 50


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"token_ids": [1, 2, 3, 10]}, "token_ids: 10 is outside"),
        ({"token_ids": [1, -1, 3, 4]}, "token_ids: -1 is outside"),
        ({"advantages": None}, "advantages is missing"),
        ({"advantages": [0.0, 0.0, 1e7, 0.0]}, "advantages: 1e\\+07 is beyond"),
        ({"logprobs": [0.0, 0.0, 0.5, -1.0]}, "logprobs: a log-probability is above 0"),
        ({"temperatures": [1.0, 1.0, 0.0, 1.0]}, "temperatures: a trained token"),
        ({"rl_weights": [0.0, 1.0, 1.0, 1.0]}, "rl_weights: token 1 has a weight but was not sampled"),
        ({"ref_kl_weights": [0.0, 0.0, 1.0, 0.0]}, "ref_logprobs is missing"),
        ({"ce_weights": [1.0, 0.0, 0.0, 0.0]}, "ce_weights: nothing precedes"),
        ({"policy_versions": [0, 0, 0, 1]}, "policy_versions: version 1 does not exist before step 1"),
        ({"rl_weights": [0.0] * 4}, "no token of any sample carries a weight"),
    ],
)
def test_a_wrong_sample_is_named(changes, named):
    with pytest.raises(BadBatch, match=named):
        read(sample(**changes), n_rl=9, n_ce=9, n_ref_kl=9)


def test_an_over_long_sample_is_refused():
    long = {name: value * 3 for name, value in sample().model_dump(exclude_none=True).items() if isinstance(value, list)}
    with pytest.raises(BadBatch, match=r"samples\[1\]: 12 tokens exceed the context of 8"):
        read(sample(), TrainSample(**long))


def test_a_header_that_counts_too_few_is_refused():
    with pytest.raises(BadBatch, match="n_rl is 1, but 2 tokens carry rl_weights"):
        read(sample(), n_rl=1)


def test_no_figure_of_the_trainer_has_the_name_of_one_of_the_orchestrator():
    trainer = staleness_of(read(sample()), 1) | metrics_of(torch.ones(len(TALLY)))
    assert not trainer.keys() & cut_metrics([], broken_prefixes=0).keys()


def test_staleness_counts_versions_behind_the_step():
    streams = read(sample(policy_versions=[5] * 4), sample(policy_versions=[3, 3, 3, 5]), sample(policy_versions=[3] * 4), step=6)
    metrics = staleness_of(streams, 6)
    assert metrics == {
        "sample_staleness_mean": pytest.approx(4 / 3),
        "sample_staleness_max": 2.0,
        "sample_staleness_share_0": pytest.approx(1 / 3),
        "sample_staleness_share_2": pytest.approx(2 / 3),
    }
