"""The model in plain torch against transformers, and exported adapters against PEFT."""

import json

import numpy as np
import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file
from transformers import LlamaForCausalLM

from tests.factories.tiny_llama import make_model
from tests.numerics.recorded import WEIGHTS, new_pool, recorded, run_id, spec, step_together
from trainer.contracts.adapters import LoraSpec
from trainer.contracts.catalogue import weights_digest
from trainer.core.adapter_stack import AdapterStack
from trainer.core.adapters import Adapter
from trainer.core.layout import lay_out
from trainer.core.llama import Llama

LENGTHS = (5, 40, 33, 17, 2)


def random_rows(seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.integers(0, 256, size=length) for length in LENGTHS]


def packed_logprobs(model: Llama, adapter: Adapter, rows: list[np.ndarray]) -> list[torch.Tensor]:
    tokens = [sum(map(len, rows))]
    with torch.no_grad():
        hidden = model.hidden(lay_out(rows, tokens), AdapterStack([adapter], model.targets, tokens))
        return list(model.logits(hidden).log_softmax(-1).split([len(row) for row in rows]))


def unpacked_logprobs(model, rows: list[np.ndarray]) -> list[torch.Tensor]:
    with torch.no_grad():
        return [model(torch.from_numpy(row)[None]).logits[0].log_softmax(-1) for row in rows]


def worst(left: list[torch.Tensor], right: list[torch.Tensor]) -> float:
    return max((a - b).abs().max().item() for a, b in zip(left, right, strict=True))


def assert_agree(left: list[torch.Tensor], right: list[torch.Tensor]) -> None:
    """Within 1e-5, of the value where that is above 1."""
    torch.testing.assert_close(torch.cat(left), torch.cat(right), rtol=1e-5, atol=1e-5)


def test_tiny_equals_transformers():
    model = Llama(WEIGHTS)
    theirs = LlamaForCausalLM.from_pretrained(WEIGHTS, dtype=torch.float32)
    fresh = Adapter(LoraSpec(), model.targets, torch.float32)
    assert_agree(packed_logprobs(model, fresh, random_rows()), unpacked_logprobs(theirs, random_rows()))


SHAPES = [{}, {"tie_word_embeddings": False}, {"num_key_value_heads": 1, "rope_theta": 5e5}, {"head_dim": 16}]


@pytest.mark.parametrize("shape", SHAPES)
def test_other_shapes_equal_transformers(tmp_path, shape):
    folder = make_model(tmp_path / "model", seed=3, **shape)
    model = Llama(folder)
    theirs = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)
    fresh = Adapter(LoraSpec(), model.targets, torch.float32)
    assert_agree(packed_logprobs(model, fresh, random_rows()), unpacked_logprobs(theirs, random_rows()))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"model_type": "qwen2"}, "model_type 'qwen2'"),
        ({"attention_bias": True}, "attention_bias"),
        ({"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, "scaled rotary positions"),
    ],
)
def test_a_model_that_is_not_computed_is_refused(tmp_path, changes, named):
    folder = make_model(tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))
    with pytest.raises(ValueError, match=named):
        Llama(folder)


def test_packed_rows_equal_rows_alone():
    model = Llama(WEIGHTS, torch.float64)
    adapter = Adapter(LoraSpec(), model.targets, torch.float64)
    adapter.params_P.copy_(torch.randn(adapter.params_P.numel(), generator=torch.Generator().manual_seed(1)) * 0.1)
    alone = [packed_logprobs(model, adapter, [row])[0] for row in random_rows()]
    assert worst(packed_logprobs(model, adapter, random_rows()), alone) < 1e-12


@pytest.mark.parametrize(
    "lora",
    [
        LoraSpec(rank=8, alpha=16),
        LoraSpec(rank=3, alpha=5),
        LoraSpec(rank=4, alpha=32, target_modules=("q_proj", "v_proj")),
        LoraSpec(rank=16, alpha=16, target_modules=("down_proj", "o_proj", "up_proj")),
    ],
)
def test_an_exported_adapter_loads_in_peft_and_gives_the_same_logits(tmp_path, lora):
    run = run_id("peft")
    pool = new_pool(tmp_path)
    pool.open(run, spec(lora=lora))
    for batch in recorded(run, 3, seed=5):
        (result,) = step_together(pool, [batch])
    folder = tmp_path / result.adapter_path
    assert json.loads((folder / "adapter_config.json").read_text())["r"] == lora.rank
    assert {tensor.shape[0] for name, tensor in load_file(folder / "adapter_model.safetensors").items() if "lora_A" in name} == {
        lora.rank
    }
    theirs = PeftModel.from_pretrained(LlamaForCausalLM.from_pretrained(WEIGHTS, dtype=torch.float32), folder)
    ours = packed_logprobs(pool.model, pool.tenant(run).adapter, random_rows())
    assert_agree(ours, unpacked_logprobs(theirs, random_rows()))
    base = packed_logprobs(pool.model, Adapter(lora, pool.model.targets, torch.float32), random_rows())
    assert worst(ours, base) > 1e-3, "the adapter must do something"


def test_the_digest_is_that_of_the_file_and_sees_the_smallest_change():
    model = Llama(WEIGHTS)
    assert model.digest_now() == weights_digest(WEIGHTS)
    weight = model.layers[1].mlp_in
    before = weight[7, 3].item()
    weight[7, 3] = np.nextafter(np.float32(before), np.float32(9.0)).item()
    assert model.digest_now() != weights_digest(WEIGHTS)
    weight[7, 3] = before
    assert model.digest_now() == weights_digest(WEIGHTS)
