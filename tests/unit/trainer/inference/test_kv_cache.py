"""Blocks are owned by one sequence at a time, block 0 by none, and come back empty."""

import torch

from trainer.inference.kv_cache import KVCache


def make_cache(blocks=6):
    return KVCache(layers=2, kv_width=4, blocks=blocks, block_tokens=4, device=torch.device("cpu"), dtype=torch.float32)


def test_blocks_are_distinct_and_never_block_zero():
    cache = make_cache()
    first, second = cache.take(2), cache.take(3)
    assert sorted(first + second) == [1, 2, 3, 4, 5]
    assert cache.free_count == 0
    cache.give_back(first)
    assert sorted(cache.take(2)) == sorted(first)


def test_a_returned_block_is_zero_and_its_neighbour_untouched():
    cache = make_cache()
    mine, theirs = cache.take(1), cache.take(1)
    for layer in cache.layers:
        layer[mine[0] * 4 : mine[0] * 4 + 4] = float("nan")
        layer[theirs[0] * 4 : theirs[0] * 4 + 4] = 1.0
    cache.give_back(mine)
    for layer in cache.layers:
        assert not layer[mine[0] * 4 : mine[0] * 4 + 4].any()
        assert (layer[theirs[0] * 4 : theirs[0] * 4 + 4] == 1).all()


def test_sizes():
    cache = make_cache()
    assert [cache.blocks_needed(count) for count in (1, 4, 5, 16)] == [1, 1, 2, 4]
    size = {"layers": 2, "kv_width": 4, "block_tokens": 4, "dtype": torch.float32}
    assert KVCache.blocks_for_bytes(2 * 2 * 4 * 4 * 4 * 7, **size) == 7
