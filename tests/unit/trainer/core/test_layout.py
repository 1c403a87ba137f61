"""The index arithmetic of packed rows: every token is found again, and nobody else's is attended to."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.core.layout import WIDTH_STEP, lay_out, width_of

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
