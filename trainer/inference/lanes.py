"""Per-sequence state that each step reads for all rows at once, as arrays indexed by lane. No policy, no tensors.

A lane is the place of one running sequence. Arrays instead of objects keep the cost of a step independent of Python loops.
"""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


class Lanes:
    """`count` lanes for sequences of at most `context` tokens."""

    def __init__(self, count: int, context: int, block_tokens: int):
        self.tokens: Ints = np.zeros((count, context), np.int64)
        self.known: Ints = np.zeros(count, np.int64)
        """Tokens that exist: prompt and sampled ones."""
        self.computed: Ints = np.zeros(count, np.int64)
        """Tokens whose keys and values are in the cache."""
        self.block_table: Ints = np.zeros((count, -(-context // block_tokens)), np.int64)
        self.adapter_key: Ints = np.zeros(count, np.int64)
        """Rows are sorted by it: 0 is the base model, then one number per placed adapter, rank classes apart."""
        self.temperature = np.zeros(count, np.float32)
        self.top_p = np.ones(count, np.float32)
        self.top_k: Ints = np.zeros(count, np.int64)
        self.min_p = np.zeros(count, np.float32)
        self.seed = np.zeros(count, np.uint64)
        self.produced = np.zeros(count, np.uint64)
        """Tokens sampled so far: the counter of the sequence's random stream."""
        self.top_logprobs: Ints = np.zeros(count, np.int64)
        self._free = list(range(count))[::-1]

    @property
    def free_count(self) -> int:
        return len(self._free)

    def take(self, prompt: list[int], blocks: list[int]) -> int:
        lane = self._free.pop()
        self.tokens[lane, : len(prompt)] = prompt
        self.known[lane], self.computed[lane], self.produced[lane] = len(prompt), 0, 0
        # Unused entries name block 0, which stays zero: padding must never read another sequence's keys.
        self.block_table[lane] = 0
        self.block_table[lane, : len(blocks)] = blocks
        return lane

    def give_back(self, lane: int) -> None:
        assert lane not in self._free, "a lane is given back once"
        self._free.append(lane)

    def append(self, lanes_B: Ints, token_ids_B: Ints) -> None:
        """One sampled token for each of these lanes."""
        self.tokens[lanes_B, self.known[lanes_B]] = token_ids_B
        self.known[lanes_B] += 1
        self.produced[lanes_B] += np.uint64(1)
