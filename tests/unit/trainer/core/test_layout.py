"""The index arithmetic of packed rows: every token is found again, and nobody else's is attended to."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.core.layout import SHARED_MIN, WIDTH_STEP, lay_out, width_of

LENGTHS = st.lists(st.integers(2, 3 * WIDTH_STEP + 1), min_size=1, max_size=12)


def laid_out(lengths):
    samples, start = [], 0
    for length in lengths:
        samples.append(np.arange(start, start + length))
        start += length
    return samples, lay_out(samples, [start])


@given(LENGTHS)
def test_blocks_give_back_every_flat_token(lengths):
    samples, layout = laid_out(lengths)
    flat = torch.arange(sum(lengths))
    concatenated = torch.cat([flat[block.gather] for block in layout.blocks])
    assert torch.equal(concatenated[layout.restore_T], flat)
    assert layout.token_ids_T.tolist() == np.concatenate(samples).tolist()


@given(LENGTHS)
def test_rows_hold_one_sample_each_from_its_first_token_on(lengths):
    samples, layout = laid_out(lengths)
    owner = np.concatenate([np.full(len(sample), index) for index, sample in enumerate(samples)])
    for block in layout.blocks:
        rows = owner[block.gather.numpy().reshape(block.rows, block.width)]
        assert (rows == rows[:, :1]).all(), "a short row is filled with its own sample's last token"
    firsts = {int(sample[0]) for sample in samples}
    assert {int(i) for block in layout.blocks for i in block.gather[:: block.width]} == firsts


def test_a_samples_width_depends_on_its_length_alone():
    assert [width_of(n) for n in (2, 32, 33, 64, 65)] == [32, 32, 64, 64, 96]
    _, layout = laid_out([5, 40, 7])
    assert [(block.rows, block.width) for block in layout.blocks] == [(2, 32), (1, 64)]


PROMPT = np.arange(1000, 1000 + 2 * SHARED_MIN)


def answers(*lengths: int) -> list[np.ndarray]:
    """Samples that begin with PROMPT and go on with tokens of their own."""
    return [np.concatenate([PROMPT, np.arange(100 * index, 100 * index + length)]) for index, length in enumerate(lengths, 1)]


def test_a_shared_beginning_is_laid_out_once_and_every_sample_is_found_again():
    samples = answers(3, 1, 7)
    layout = lay_out(samples, [sum(map(len, samples))])
    assert layout.group_rows == (len(PROMPT) + 3 + 1 + 7,)
    for sample, rows in zip(samples, layout.sample_rows, strict=True):
        assert layout.token_ids_T[rows].tolist() == sample.tolist()


def seen(layout) -> dict[int, list[int]]:
    """Per flat token, those that it attends to, in the order of their positions, which must be its own sample's."""
    found = {}
    for block in layout.blocks:
        before = [] if block.beginning is None else block.beginning.tolist()
        assert block.first == len(before)
        sees = torch.ones(block.width, block.width).tril() if block.visible is None else block.visible
        filler = set() if block.filler is None else set(block.filler.tolist())
        for place, token in enumerate(block.gather.tolist()):
            row, column = divmod(place, block.width)
            columns = before + block.gather.tolist()[row * block.width : (row + 1) * block.width]
            if place not in filler:
                assert token not in found, "a token asks once"
                found[token] = [columns[index] for index in np.flatnonzero(sees[column])]
    return found


def test_in_a_shared_row_a_token_sees_its_own_sample_up_to_itself_and_nothing_else():
    samples = answers(3, 2, 2 * WIDTH_STEP)
    layout = lay_out(samples, [sum(map(len, samples))])
    attended = seen(layout)
    for rows in layout.sample_rows:
        for place, row in enumerate(rows):
            assert attended[row] == rows[: place + 1].tolist()
    assert [(block.rows, block.width, block.first) for block in layout.blocks] == [(1, 32, 0), (2, 32, 32), (1, 64, 32)]


def test_samples_of_two_adapters_share_nothing():
    samples = answers(3, 3)
    layout = lay_out(samples, [len(samples[0]), len(samples[1])])
    assert layout.group_rows == tuple(map(len, samples))


def test_a_beginning_is_not_shared_where_the_others_would_lose_more_than_it_saves():
    long = np.concatenate([PROMPT, np.arange(200)])
    alike, short = [long, long, long], PROMPT[:SHARED_MIN]
    assert lay_out(alike, [3 * len(long)]).group_rows == (len(long),)
    assert lay_out([*alike, short], [3 * len(long) + len(short)]).group_rows == (len(long) + len(short),)


@given(st.lists(st.lists(st.integers(0, 1), min_size=2, max_size=60), min_size=1, max_size=8))
def test_whatever_is_shared_every_sample_is_found_again(contents):
    samples = [np.array(content) for content in contents]
    layout = lay_out(samples, [sum(map(len, samples))])
    for sample, rows in zip(samples, layout.sample_rows, strict=True):
        assert layout.token_ids_T[rows].tolist() == sample.tolist()
    attended = seen(layout)
    assert all(attended[row] == rows[: place + 1].tolist() for rows in layout.sample_rows for place, row in enumerate(rows))
    flat = torch.arange(len(layout.token_ids_T))
    assert torch.equal(torch.cat([flat[block.gather] for block in layout.blocks])[layout.restore_T], flat)
