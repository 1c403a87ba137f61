"""One step's batch as index tensors: which tokens, where their keys go, who attends to what. Pure bookkeeping, no weights.

A row is one running sequence. Prompt and decode are the same thing here: tokens that are known but not computed yet.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from trainer.inference.lanes import Ints, Lanes

_BLOCKS_BUCKET_MIN = 4
"""Rows of up to this many blocks share one attention call: below it, padding costs less than a second call."""


@dataclass(frozen=True, slots=True)
class AttentionGroup:
    """Rows of similar query and key length, padded to the longest of them."""

    size: tuple[int, int]
    """(rows B, queries Q)"""
    block_tokens: int
    block_ids: Tensor
    """[B · blocks], padded with block 0, which is always zero."""
    mask_B1QK: Tensor
    """True where a query may see a key."""
    is_whole: bool
    """The group's queries are all tokens of the step in order; the three index tensors below are then not needed."""
    query_rows: Tensor
    """[B·Q] token row of each query; padding repeats a row's last token."""
    valid_rows: Tensor
    """[n] flat queries that are no padding …"""
    out_rows: Tensor
    """[n] … and the token row that each of them answers."""


@dataclass(frozen=True, slots=True)
class StepBatch:
    """T tokens of B rows. Rows are sorted by adapter, so the tokens of one adapter lie together."""

    lanes_B: Ints
    new_B: Ints
    """Tokens that each row computes in this step."""
    ends_B: Ints
    """Token row behind each row's last one."""
    token_ids_T: Tensor
    positions_T: Tensor
    cache_rows_T: Tensor
    groups: list[AttentionGroup]


def build_batch(lanes: Lanes, lanes_B: Ints, new_B: Ints, *, block_tokens: int, device: torch.device) -> StepBatch:
    starts_B, ends_B = lanes.computed[lanes_B], np.cumsum(new_B)
    first_B = ends_B - new_B
    lane_T = np.repeat(lanes_B, new_B)
    positions_T = np.arange(ends_B[-1]) + np.repeat(starts_B - first_B, new_B)
    block_T, offset_T = np.divmod(positions_T, block_tokens)
    return StepBatch(
        lanes_B=lanes_B,
        new_B=new_B,
        ends_B=ends_B,
        token_ids_T=_tensor(lanes.tokens[lane_T, positions_T], device),
        positions_T=_tensor(positions_T, device),
        cache_rows_T=_tensor(lanes.block_table[lane_T, block_T] * block_tokens + offset_T, device),
        groups=[
            _attention_group(lanes, lanes_B[rows], starts_B[rows], new_B[rows], first_B[rows], block_tokens, device)
            for rows in _similar_rows(new_B, -(-(starts_B + new_B) // block_tokens))
        ],
    )


def _similar_rows(new_B: Ints, blocks_B: Ints) -> list[Ints]:
    """Rows whose query and key lengths fall into the same powers of two."""
    key_B = _log2_ceil(new_B) * 64 + _log2_ceil(np.maximum(blocks_B, _BLOCKS_BUCKET_MIN))
    if (key_B == key_B[0]).all():
        return [np.arange(len(key_B))]
    return [np.flatnonzero(key_B == key) for key in np.unique(key_B)]


def _log2_ceil(values: Ints) -> Ints:
    return np.ceil(np.log2(values)).astype(np.int64)


def _attention_group(
    lanes: Lanes, lanes_B: Ints, starts_B: Ints, new_B: Ints, first_B: Ints, block_tokens: int, device: torch.device
) -> AttentionGroup:
    rows, queries = len(lanes_B), int(new_B.max())
    blocks = -(-int((starts_B + new_B).max()) // block_tokens)
    step_Q = np.arange(queries)
    token_BQ = first_B[:, None] + np.minimum(step_Q, new_B[:, None] - 1)
    mask_BQK = np.arange(blocks * block_tokens) <= (starts_B[:, None] + step_Q)[:, :, None]
    valid = np.flatnonzero(step_Q < new_B[:, None])
    token_rows = token_BQ.reshape(-1)
    return AttentionGroup(
        size=(rows, queries),
        block_tokens=block_tokens,
        block_ids=_tensor(lanes.block_table[lanes_B, :blocks].reshape(-1), device),
        mask_B1QK=_tensor(mask_BQK[:, None], device),
        is_whole=len(valid) == len(token_rows) and bool((token_rows == np.arange(len(token_rows))).all()),
        query_rows=_tensor(token_rows, device),
        valid_rows=_tensor(valid, device),
        out_rows=_tensor(token_rows[valid], device),
    )


def _tensor(array: np.ndarray, device: torch.device) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array)).to(device, non_blocking=True)
