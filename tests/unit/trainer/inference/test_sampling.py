"""Distributions: what is sampled is what is reported, cuts cut, seeds repeat, and every number is finite."""

import numpy as np
import pytest
import torch

from trainer.inference.sampling import SamplingRows, sample, stream_seed, tempered_logprobs, truncate, uniforms


def rows(count, *, temperature=1.0, uniform=None, truncated=False, top_p=1.0, top_k=0, min_p=0.0, top_logprobs=0):
    return SamplingRows(
        temperature_B=torch.full((count,), temperature),
        uniform_B=torch.linspace(0, 1, count + 1, dtype=torch.float64)[:-1] if uniform is None else uniform,
        truncated=torch.arange(count) if truncated else None,
        top_p_B=torch.full((count,), top_p),
        top_k_B=torch.full((count,), top_k),
        min_p_B=torch.full((count,), min_p),
        top_logprobs=top_logprobs,
    )


def test_frequencies_follow_the_tempered_distribution():
    logits = torch.tensor([[2.0, 1.0, 0.0, -30.0]])
    tokens = sample(logits.expand(20_000, 4).clone(), rows(20_000, temperature=0.5)).token_ids_B
    wanted = torch.softmax(logits[0] / 0.5, dim=-1)
    assert torch.bincount(tokens, minlength=4) / 20_000 == pytest.approx(wanted, abs=1e-3)


def test_greedy_takes_the_maximum_and_reports_temperature_one():
    logits = torch.tensor([[0.0, 3.0, 1.0]])
    result = sample(logits, rows(1, temperature=0.0))
    assert result.token_ids_B.tolist() == [1]
    assert result.logprobs_B[0] == torch.log_softmax(logits, -1)[0, 1]


def test_logprobs_are_those_of_the_sampling_temperature_before_any_cut():
    logits = torch.randn(64, 9, generator=torch.Generator().manual_seed(0))
    result = sample(logits, rows(64, temperature=1.7, truncated=True, top_k=2))
    wanted = torch.log_softmax(logits / 1.7, -1).gather(1, result.token_ids_B.unsqueeze(1)).squeeze(1)
    assert torch.equal(result.logprobs_B, wanted)


@pytest.mark.parametrize(
    ("cut", "kept"),
    [
        ({"top_k": 2}, {0, 1}),
        ({"top_p": 0.7}, {0, 1}),
        ({"top_p": 0.4}, {0}),
        ({"top_p": 1e-6}, {0}),
        ({"min_p": 0.5}, {0, 1}),
        ({"min_p": 1.0}, {0}),
        ({"top_k": 3, "top_p": 0.95}, {0, 1, 2}),
        ({"top_k": 100}, {0, 1, 2, 3}),
    ],
)
def test_cuts_keep_exactly_the_likely_tokens(cut, kept):
    logits = torch.tensor([0.5, 0.3, 0.15, 0.05]).log()
    result = sample(logits.expand(4000, 4).clone(), rows(4000, truncated=True, **cut))
    assert set(result.token_ids_B.tolist()) == kept


def test_a_row_without_cuts_is_not_changed_by_its_neighbours():
    logits = torch.randn(2, 300, generator=torch.Generator().manual_seed(3))
    uniform = torch.tensor([0.999999, 0.3], dtype=torch.float64)
    plain = sample(logits, rows(2, uniform=uniform)).token_ids_B
    mixed = SamplingRows(
        temperature_B=torch.ones(2),
        uniform_B=uniform,
        truncated=torch.tensor([1]),
        top_p_B=torch.tensor([1.0, 0.1]),
        top_k_B=torch.tensor([0, 0]),
        min_p_B=torch.zeros(2),
        top_logprobs=0,
    )
    assert sample(logits, mixed).token_ids_B[0] == plain[0]


def test_the_ends_of_the_unit_interval_never_meet_an_impossible_token():
    logits = torch.tensor([[-torch.inf, 0.0, 0.0, -torch.inf]]).expand(2, 4).clone()
    uniform = torch.tensor([0.0, 1 - 2.0**-52], dtype=torch.float64)
    assert sample(logits, rows(2, uniform=uniform)).token_ids_B.tolist() == [1, 2]


def test_a_non_finite_row_says_so_and_leaves_its_neighbour_alone():
    logits = torch.tensor([[float("nan"), 0.0], [5.0, 0.0]])
    result = sample(logits, rows(2, temperature=0.0))
    assert torch.isfinite(result.logprobs_B).tolist() == [False, True]
    assert result.token_ids_B[1] == 0


def test_extreme_logits_stay_finite():
    logits = torch.tensor([[1e4, -1e4, 0.0]])
    assert torch.isfinite(tempered_logprobs(logits, torch.tensor([0.01]))).all()


def test_top_logprobs_are_sorted_and_hold_the_best():
    result = sample(torch.tensor([[0.0, 3.0, 1.0]]), rows(1, top_logprobs=2))
    assert result.top_ids_BK.tolist() == [[1, 2]]


def test_truncate_leaves_kept_probabilities_as_they_are():
    probs = torch.tensor([[0.1, 0.6, 0.3]])
    cut = truncate(probs, top_p_B=torch.tensor([0.8]), top_k_B=torch.tensor([0]), min_p_B=torch.tensor([0.0]))
    assert torch.equal(cut, torch.tensor([[0.0, 0.6, 0.3]]))


def test_streams_repeat_by_seed_and_look_uniform():
    first, again, other = stream_seed(1), stream_seed(1), stream_seed(2)
    assert first == again != other
    assert stream_seed(None) != stream_seed(None)
    values = uniforms(np.full(20_000, first, np.uint64), np.arange(20_000, dtype=np.uint64))
    assert values.min() >= 0
    assert values.max() < 1
    assert np.histogram(values, bins=10, range=(0, 1))[0] == pytest.approx(2000, rel=0.1)
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 0.03
