"""Keys and values of all running sequences, in blocks. Knows storage and who owns a block; refuses to know scheduling.

Block 0 is never handed out and stays zero: padded block tables point at it. A block may have several holders, who read it; it is
zeroed when the last one gives it back, so that neither a non-finite value nor another team's keys ever lie behind a mask.
"""

import torch
from torch import Tensor


class KVCache:
    """`layers[i]` is [blocks · block_tokens, 2 · kv_width]: a token's key and value side by side."""

    def __init__(self, *, layers: int, kv_width: int, blocks: int, block_tokens: int, device: torch.device, dtype: torch.dtype):
        assert blocks >= 2, "block 0 is reserved"
        self.block_tokens = block_tokens
        self.blocks_total = blocks - 1
        self.layers: list[Tensor] = [
            torch.zeros(blocks * block_tokens, 2 * kv_width, device=device, dtype=dtype) for _ in range(layers)
        ]
        self._free = list(range(1, blocks))[::-1]
        self._holders = [0] * blocks

    @staticmethod
    def blocks_for_bytes(size_bytes: int, *, layers: int, kv_width: int, block_tokens: int, dtype: torch.dtype) -> int:
        return size_bytes // (layers * 2 * kv_width * block_tokens * dtype.itemsize)

    @property
    def free_count(self) -> int:
        return len(self._free)

    def blocks_needed(self, tokens_count: int) -> int:
        return -(-tokens_count // self.block_tokens)

    def take(self, count: int) -> list[int]:
        assert count <= len(self._free), "the caller checks free_count first"
        if not count:
            return []
        taken = self._free[-count:][::-1]
        del self._free[-count:]
        return self.share(taken)

    def share(self, blocks: list[int]) -> list[int]:
        """One holder more for each of these blocks."""
        for block in blocks:
            self._holders[block] += 1
        return blocks

    def give_back(self, blocks: list[int]) -> None:
        for block in blocks:
            assert self._holders[block] > 0, "a block is given back once per holder"
            self._holders[block] -= 1
        unheld = [block for block in blocks if not self._holders[block]]
        if not unheld:
            return
        index = torch.tensor(unheld, device=self.layers[0].device)
        for layer in self.layers:
            layer.view(-1, self.block_tokens * layer.shape[1]).index_fill_(0, index, 0.0)
        self._free.extend(unheld)
