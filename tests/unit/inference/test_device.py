"""A step lies on its model's device alone: on torch's device without data, which refuses a CPU's tensors as CUDA would."""

import torch

from tests.factories.engines import make_sequence
from tests.factories.tiny_llama import make_model
from trainer.contracts.generation import SamplingParams
from trainer.inference.core import EngineCore
from trainer.inference.limits import EngineLimits
from trainer.inference.llama import load_llama
from trainer.inference.lora import AdapterWeights, LoraLayout


def test_a_mixed_step_is_computed_and_sampled_on_the_models_device(tmp_path, monkeypatch):
    model = load_llama(make_model(tmp_path / "model"), device=torch.device("meta"), dtype=torch.bfloat16)
    core = EngineCore(model, EngineLimits(kv_cache_bytes=2**20, sequences_max=8, adapter_slots=4))
    layout = LoraLayout(model.shape, 8)
    adapters = [None, *(AdapterWeights(f"digest {index}", 8, torch.zeros(layout.size)) for index in range(3))]
    sampled = []
    monkeypatch.setattr(core, "_hand_out", lambda _, found: sampled.append(found) or [])  # there the host reads what came out
    for index, adapter in enumerate(adapters):
        cut = SamplingParams(temperature=1.0, top_p=0.9)
        core.scheduler.add(make_sequence(list(range(5 + 30 * index)), adapter, sampling=cut, top_logprobs=2))
    core.step()
    (found,) = sampled
    assert found.token_ids_B.shape == (4,)
    assert {one.device.type for one in (found.token_ids_B, found.logprobs_B, found.top_ids_BK, found.top_logprobs_BK)} == {"meta"}
