"""An engine core on random weights, sequences for it, and the reference that it is compared with."""

from pathlib import Path

import torch

from trainer.contracts.catalogue import weights_digest
from trainer.contracts.generation import AdapterIdentity, SamplingParams
from trainer.inference.adapter_files import AdapterReader
from trainer.inference.core import EngineCore
from trainer.inference.limits import EngineLimits
from trainer.inference.llama import load_llama
from trainer.inference.lora import AdapterWeights
from trainer.inference.sequence import Sequence


def small_limits(**overrides: object) -> EngineLimits:
    defaults = {"sequences_max": 16, "step_tokens_max": 64, "waiting_max": 8, "kv_cache_bytes": 2**20, "adapter_slots": 4}
    return EngineLimits(**(defaults | overrides))


def make_core(model: Path, **limits: object) -> EngineCore:
    return EngineCore(load_llama(model, device=torch.device("cpu"), dtype=torch.float32), small_limits(**limits))


def reader_of(root: Path, model: Path, *, rank_max: int = 64) -> AdapterReader:
    shape = load_llama(model, device=torch.device("cpu"), dtype=torch.float32).shape
    return AdapterReader(root=root, shape=shape, base_digest=weights_digest(model), rank_max=rank_max)


def make_sequence(
    prompt: list[int] | None = None, adapter: AdapterWeights | None = None, *, max_new: int = 8, **fields: object
) -> Sequence:
    """Greedy unless `sampling` says otherwise; no stop token, so that it takes exactly `max_new` steps."""
    sampling = fields.pop("sampling", None) or SamplingParams(temperature=0.0, max_tokens=max_new)
    defaults = {"id": "s", "identity": AdapterIdentity(name="m", digest="0" * 64), "deadline_at_s": float("inf")}
    return Sequence(prompt=prompt or [10, 20, 30], adapter=adapter, sampling=sampling, max_new=max_new, **(defaults | fields))


def run(core: EngineCore, *sequences: Sequence, steps_max: int = 500) -> list[list[int]]:
    """Add these, step until all have ended, and return their tokens."""
    for sequence in sequences:
        core.scheduler.add(sequence)
    for _ in range(steps_max):
        if all(sequence.is_finished for sequence in sequences):
            return [sequence.token_ids for sequence in sequences]
        core.step()
    raise AssertionError(f"not finished after {steps_max} steps")
