"""Who runs in the next step: waiting → running → finished, under the limits of lanes, KV blocks and adapter slots.

Knows resources and order; refuses to know weights and tokens' meaning. A sequence is admitted only with every block it can ever
need, so a running one never has to be preempted and the batch cannot deadlock.
"""

import time
from collections import deque
from collections.abc import Iterator

import numpy as np

from trainer.inference.kv_cache import KVCache
from trainer.inference.lanes import Ints, Lanes
from trainer.inference.limits import EngineLimits
from trainer.inference.lora import AdapterSlots
from trainer.inference.sequence import FinishReason, Sequence, SequenceState
from trainer.inference.shared_prompts import SharedPrompts


class Scheduler:
    """Used by the engine thread alone."""

    def __init__(self, lanes: Lanes, cache: KVCache, slots: AdapterSlots, limits: EngineLimits):
        self._lanes = lanes
        self._cache = cache
        self._slots = slots
        self._limits = limits
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        """In the order of admission."""
        self.by_lane: dict[int, Sequence] = {}
        self._prompts = SharedPrompts(limits.block_tokens)

    def add(self, sequence: Sequence) -> None:
        assert sequence.state is SequenceState.WAITING
        if sequence.urgent:
            self.waiting.appendleft(sequence)
        else:
            self.waiting.append(sequence)

    def admit(self) -> None:
        """Move whoever fits into the batch, oldest first.

        Too little KV stops the queue: large requests must not be passed forever. A request whose adapter finds no slot may be
        passed, but only until its patience ends.
        """
        passed: list[Sequence] = []
        while self.waiting and self._lanes.free_count:
            sequence = self.waiting[0]
            if self._cache.blocks_needed(self._tokens_max(sequence)) > self._cache.free_count:
                break
            key = 0 if sequence.adapter is None else self._slots.place(sequence.adapter)
            if key is None and time.monotonic() - sequence.submitted_at_s > self._limits.patience_s:
                break
            self.waiting.popleft()
            if key is None:
                passed.append(sequence)
            else:
                self._start(sequence, key)
        self.waiting.extendleft(reversed(passed))

    def _start(self, sequence: Sequence, key: int) -> None:
        sequence.adapter_key = key
        source, shared = self._prompts.join(sequence)
        read = self._cache.share(source.blocks[:shared]) if source is not None else []
        sequence.blocks = read + self._cache.take(self._cache.blocks_needed(self._tokens_max(sequence)) - len(read))
        lane = sequence.lane = self._lanes.take(sequence.prompt, sequence.blocks)
        sampling, lanes = sequence.sampling, self._lanes
        lanes.computed[lane] = shared * self._limits.block_tokens
        lanes.adapter_key[lane] = key
        lanes.temperature[lane] = sampling.temperature
        lanes.top_p[lane], lanes.top_k[lane], lanes.min_p[lane] = sampling.top_p, sampling.top_k, sampling.min_p
        lanes.seed[lane] = sequence.stream
        lanes.top_logprobs[lane] = sequence.top_logprobs
        sequence.state = SequenceState.RUNNING
        self.running.append(sequence)
        self.by_lane[lane] = sequence

    @staticmethod
    def _tokens_max(sequence: Sequence) -> int:
        return len(sequence.prompt) + sequence.max_new

    def plan(self) -> tuple[Ints, Ints]:
        """Lanes of the next step, sorted by adapter, and the tokens that each computes.

        Everyone's next token comes first; what is left of the step's budget goes to prompts, in the order of admission, so that
        a shared prompt is never read before the step that computes it.
        """
        lanes_B = np.fromiter((sequence.lane for sequence in self.running), np.int64, len(self.running))
        new_B = self._lanes.known[lanes_B] - self._lanes.computed[lanes_B]
        if new_B.sum() > self._limits.step_tokens_max:
            prompt_B = np.where(new_B > 1, new_B, 0)
            room = self._limits.step_tokens_max - int((new_B == 1).sum())
            given_B = np.clip(room - (np.cumsum(prompt_B) - prompt_B), 0, prompt_B)
            new_B = np.where(new_B > 1, given_B, new_B)
            lanes_B, new_B = lanes_B[new_B > 0], new_B[new_B > 0]
        order = np.argsort(self._lanes.adapter_key[lanes_B], kind="stable")
        return lanes_B[order], new_B[order]

    def finish(self, sequence: Sequence, reason: FinishReason) -> None:
        """End a sequence in any state and give back what it holds. Ending a finished one does nothing."""
        if sequence.is_finished:
            return
        if sequence.state is SequenceState.RUNNING:
            self._give_back(sequence)
        else:
            self.waiting.remove(sequence)
        sequence.finish_reason = reason
        sequence.adapter = None
        sequence.state = SequenceState.FINISHED

    def _give_back(self, sequence: Sequence) -> None:
        heir = self._prompts.leave(sequence)
        if heir is not None:
            # Cut off in the middle of its prompt: the next member goes on where it stopped.
            computed = self._lanes.computed
            computed[heir.lane] = min(computed[heir.lane], computed[sequence.lane])
        self.running.remove(sequence)
        del self.by_lane[sequence.lane]
        self._lanes.give_back(sequence.lane)
        self._cache.give_back(sequence.blocks)
        if sequence.adapter_key:
            self._slots.release(sequence.adapter_key)

    def expired(self, now_s: float) -> list[Sequence]:
        return [sequence for sequence in self._all() if sequence.deadline_at_s <= now_s]

    def _all(self) -> Iterator[Sequence]:
        yield from self.running
        yield from self.waiting

    @property
    def depth(self) -> int:
        return len(self.running) + len(self.waiting)

    @property
    def has_work(self) -> bool:
        return self.depth > 0
