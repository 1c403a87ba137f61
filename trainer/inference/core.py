"""One step of the engine: admit, compute, sample, hand out. Synchronous and single-threaded; knows no clock but deadlines.

Refuses to know HTTP, text and threads: `EngineThread` drives it, tests call `step()` themselves.
"""

import numpy as np
import numpy.typing as npt
import torch

from trainer.inference.batch import StepBatch, build_batch
from trainer.inference.kv_cache import KVCache
from trainer.inference.lanes import Ints, Lanes
from trainer.inference.limits import EngineLimits
from trainer.inference.llama import Llama
from trainer.inference.lora import AdapterSlots
from trainer.inference.sampling import Sampled, SamplingRows, sample, tempered_logprobs, uniforms
from trainer.inference.scheduler import Scheduler
from trainer.inference.sequence import FinishReason, Sequence, TopLogprobs

SCORED_ROWS_MAX = 256
"""Prompt tokens whose whole distributions are held at once: of a large vocabulary a step's would be gigabytes."""


class EngineCore:
    """All mutable state of one engine: lanes, KV cache, adapter slots, queues."""

    def __init__(self, model: Llama, limits: EngineLimits):
        shape = model.shape
        self._model = model
        self._limits = limits
        self.lanes = Lanes(limits.sequences_max, shape.context, limits.block_tokens)
        self.cache = KVCache(
            layers=shape.layers,
            kv_width=shape.kv_width,
            blocks=self._blocks(),
            block_tokens=limits.block_tokens,
            device=model.device,
            dtype=model.dtype,
        )
        if self.cache.blocks_total < self.cache.blocks_needed(shape.context):
            raise ValueError(f"kv_cache_bytes {limits.kv_cache_bytes} does not hold one sequence of {shape.context} tokens")
        self.slots = AdapterSlots(shape, limits.adapter_slots, device=model.device, dtype=model.dtype)
        self.scheduler = Scheduler(self.lanes, self.cache, self.slots, limits)

    def _blocks(self) -> int:
        """As many as the bytes allow, and no more than all lanes can fill; block 0 comes on top."""
        shape, size = self._model.shape, self._limits.block_tokens
        affordable = KVCache.blocks_for_bytes(
            self._limits.kv_cache_bytes,
            layers=shape.layers,
            kv_width=shape.kv_width,
            block_tokens=size,
            dtype=self._model.dtype,
        )
        return 1 + min(affordable, self._limits.sequences_max * -(-shape.context // size))

    @torch.no_grad()
    def step(self) -> list[Sequence]:
        """Compute one step. Returns the sequences that got a token or ended; [] when nothing runs."""
        self.scheduler.admit()
        if not self.scheduler.running:
            return []
        lanes_B, new_B = self.scheduler.plan()
        batch = build_batch(self.lanes, lanes_B, new_B, block_tokens=self._limits.block_tokens, device=self._model.device)
        hidden_T = self._model.forward(batch, self.cache.layers, self.slots.segments(self.lanes.adapter_key[lanes_B], new_B))
        scored = self._score_prompts(batch, hidden_T)
        self.lanes.computed[lanes_B] += new_B
        complete_B = self.lanes.computed[lanes_B] == self.lanes.known[lanes_B]
        if scored:
            complete_B &= ~np.isin(lanes_B, [sequence.lane for sequence in scored])
        progressed = self._sample_rows(batch, complete_B, hidden_T) if complete_B.any() else []
        for sequence in scored:
            self.scheduler.finish(sequence, sequence.scored())
        return progressed + scored

    def _sample_rows(self, batch: StepBatch, complete_B: npt.NDArray[np.bool_], hidden_T: torch.Tensor) -> list[Sequence]:
        """One token for each row whose known tokens are all computed."""
        lanes_S = batch.lanes_B[complete_B]
        rows_S = torch.from_numpy(batch.ends_B[complete_B] - 1).to(self._model.device)
        return self._hand_out(lanes_S, sample(self._model.logits(hidden_T[rows_S]), self._sampling_rows(lanes_S)))

    def _sampling_rows(self, lanes_S: Ints) -> SamplingRows:
        lanes, device = self.lanes, self._model.device
        top_p, top_k, min_p = lanes.top_p[lanes_S], lanes.top_k[lanes_S], lanes.min_p[lanes_S]
        cut = np.flatnonzero((top_p < 1) | (top_k > 0) | (min_p > 0))
        return SamplingRows(
            temperature_B=torch.from_numpy(lanes.temperature[lanes_S]).to(device),
            uniform_B=torch.from_numpy(uniforms(lanes.seed[lanes_S], lanes.produced[lanes_S])).to(device),
            truncated=torch.from_numpy(cut).to(device) if len(cut) else None,
            top_p_B=torch.from_numpy(top_p).to(device),
            top_k_B=torch.from_numpy(top_k).to(device),
            min_p_B=torch.from_numpy(min_p).to(device),
            top_logprobs=int(lanes.top_logprobs[lanes_S].max()),
        )

    def _hand_out(self, lanes_S: Ints, sampled: Sampled) -> list[Sequence]:
        token_ids_S = sampled.token_ids_B.cpu()
        self.lanes.append(lanes_S, token_ids_S.numpy())
        sequences = [self.scheduler.by_lane[lane] for lane in lanes_S.tolist()]
        if sampled.top_ids_BK is not None and sampled.top_logprobs_BK is not None:
            _add_tops(sequences, sampled.top_ids_BK.tolist(), sampled.top_logprobs_BK.tolist())
        for sequence, token_id, logprob in zip(sequences, token_ids_S.tolist(), sampled.logprobs_B.tolist(), strict=True):
            reason = sequence.accept(token_id, logprob)
            if reason is not None:
                self.scheduler.finish(sequence, reason)
        return sequences

    def _score_prompts(self, batch: StepBatch, hidden_T: torch.Tensor) -> list[Sequence]:
        """Log-probabilities of the prompt tokens whose predecessors this step computed, for those who asked. Returns the
        sequences that wanted nothing else and have them all now."""
        through: list[Sequence] = []
        for row, lane in enumerate(batch.lanes_B.tolist()):
            sequence = self.scheduler.by_lane[lane]
            start = int(self.lanes.computed[lane])
            if sequence.prompt_top_logprobs is None or start >= len(sequence.prompt) - 1:
                continue
            end = min(start + int(batch.new_B[row]), len(sequence.prompt) - 1)
            first = int(batch.ends_B[row] - batch.new_B[row])
            for at in range(start, end, SCORED_ROWS_MAX):
                behind = min(at + SCORED_ROWS_MAX, end)
                rows_T = hidden_T[first + at - start : first + behind - start]
                self._score_chunk(sequence, rows_T, sequence.prompt[at + 1 : behind + 1])
            if not sequence.max_new and end == len(sequence.prompt) - 1:
                through.append(sequence)
        return through

    def _score_chunk(self, sequence: Sequence, hidden_T: torch.Tensor, targets: list[int]) -> None:
        temperature_T = torch.full((len(targets),), sequence.sampling.temperature, device=hidden_T.device)
        logprobs_TV = tempered_logprobs(self._model.logits(hidden_T), temperature_T)
        target_T = torch.tensor(targets, device=hidden_T.device)
        sequence.prompt_logprobs += logprobs_TV.gather(1, target_T.unsqueeze(1)).squeeze(1).tolist()
        if sequence.prompt_top_logprobs:
            top = logprobs_TV.topk(sequence.prompt_top_logprobs, dim=-1)
            sequence.prompt_tops += _pairs(top.indices.tolist(), top.values.tolist())

    def finish(self, sequence: Sequence, reason: FinishReason) -> None:
        self.scheduler.finish(sequence, reason)


def _pairs(ids: list[list[int]], logprobs: list[list[float]]) -> list[TopLogprobs]:
    return [list(zip(row_ids, row_logprobs, strict=True)) for row_ids, row_logprobs in zip(ids, logprobs, strict=True)]


def _add_tops(sequences: list[Sequence], ids: list[list[int]], logprobs: list[list[float]]) -> None:
    for sequence, pairs in zip(sequences, _pairs(ids, logprobs), strict=True):
        if sequence.top_logprobs:
            sequence.tops.append(pairs[: sequence.top_logprobs])
