"""The engine's log-probabilities are those of transformers, of PEFT, and of the trainer that will learn from them (fp32)."""

import numpy as np
import pytest
import torch
from peft import PeftModel
from transformers import LlamaForCausalLM

from tests.factories.engines import make_core, make_sequence, reader_of, run
from tests.factories.tiny_llama import adapter_tensors, make_model, write_adapter
from tests.numerics.recorded import TEAM, WEIGHTS, run_id
from trainer.contracts.adapters import LoraSpec
from trainer.contracts.catalogue import weights_digest
from trainer.contracts.generation import SamplingParams
from trainer.core.adapter_stack import AdapterStack
from trainer.core.adapters import Adapter
from trainer.core.layout import lay_out
from trainer.core.llama import Llama
from trainer.core.versions import VersionStore

MEAN_BOUND = 1e-5
WORST_BOUND = 2e-4
PROMPTS = [[(7 * index + start) % 256 for index in range(size)] for start, size in ((1, 20), (2, 33), (3, 5), (4, 60))]
TEMPERATURES = (1.0, 0.6, 1.7, 1.0)


def sampled(model, adapters, temperature_of=lambda index: TEMPERATURES[index % 4], max_new=24):
    """One mixed batch: every prompt on the base model and on every adapter."""
    sequences = [
        make_sequence(
            prompt,
            adapter,
            max_new=max_new,
            sampling=SamplingParams(temperature=temperature_of(index), seed=index, max_tokens=max_new),
        )
        for adapter in (None, *adapters)
        for index, prompt in enumerate(PROMPTS)
    ]
    run(make_core(model, sequences_max=64, kv_cache_bytes=2**24), *sequences)
    return [sequences[start : start + len(PROMPTS)] for start in range(0, len(sequences), len(PROMPTS))]


def reference_logprobs(logits_of, sequence):
    """Log-probabilities of the sampled tokens by one full pass, at the sampling temperature."""
    ids = torch.tensor([*sequence.prompt, *sequence.token_ids])
    with torch.no_grad():
        logprobs = torch.log_softmax(logits_of(ids)[:-1].float() / sequence.sampling.temperature, dim=-1)
    return logprobs.gather(1, ids[1:, None])[len(sequence.prompt) - 1 :, 0]


def differences(logits_of, sequences):
    return torch.cat([(reference_logprobs(logits_of, s) - torch.tensor(s.logprobs)).abs() for s in sequences])


def assert_agreement(logits_of, sequences):
    gaps = differences(logits_of, sequences)
    assert gaps.mean() <= MEAN_BOUND
    assert gaps.max() <= WORST_BOUND


def prompt_gaps(logits_of, sequence, *, temperature=None):
    """Between a scored prompt's log-probabilities and one full pass at the sequence's temperature, or at another."""
    ids = torch.tensor(sequence.prompt)
    with torch.no_grad():
        logprobs = torch.log_softmax(logits_of(ids)[:-1].float() / (temperature or sequence.sampling.temperature), dim=-1)
    return (logprobs.gather(1, ids[1:, None])[:, 0] - torch.tensor(sequence.prompt_logprobs)).abs()


SHAPES = {
    "grouped queries": {},
    "one key head": {"num_key_value_heads": 1, "rope_theta": 5e5},
    "no grouping, tied": {"num_key_value_heads": 4, "tie_word_embeddings": True},
    "wide heads": {"head_dim": 16},
}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_random_models_and_adapters_equal_transformers_and_peft(tmp_path, shape):
    folder = make_model(tmp_path / "model", seed=5, **shape)
    reader = reader_of(tmp_path, folder)
    specs = [
        {"seed": 1, "rank": 8},
        {"seed": 2, "rank": 3, "alpha": 5.0},
        {"seed": 3, "rank": 16, "targets": ("q_proj", "up_proj")},
    ]
    adapters = []
    for index, spec in enumerate(specs):
        write_adapter(tmp_path / f"a{index}", folder, **spec)
        adapters.append(reader.read(tmp_path / f"a{index}", digest=None))
    on_base, *on_adapters = sampled(folder, adapters)
    theirs = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)
    assert_agreement(lambda ids: theirs(ids[None]).logits[0], on_base)
    for index, sequences in enumerate(on_adapters):
        wrapped = PeftModel.from_pretrained(LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32), tmp_path / f"a{index}")
        assert_agreement(lambda ids, wrapped=wrapped: wrapped(ids[None]).logits[0], sequences)
        assert differences(lambda ids: theirs(ids[None]).logits[0], sequences).mean() > 0.1, "the adapter must matter"


def test_the_trainer_recomputes_what_the_engine_reported(tmp_path):
    """Over the file that the trainer publishes, with the shipped model: the pair that a run lives on."""
    trainer = Llama(WEIGHTS, torch.float32)
    store = VersionStore(tmp_path, "tiny", weights_digest(WEIGHTS))
    reader = reader_of(tmp_path, WEIGHTS)
    learned, served = [], []
    for version, rank in ((1, 8), (2, 32)):
        adapter = Adapter(LoraSpec(rank=rank, alpha=16), trainer.targets, torch.float32)
        adapter.params_P.normal_(0, 0.08, generator=torch.Generator().manual_seed(version))
        manifest = store.write(run_id("agreement"), TEAM, version, adapter, {})
        folder = tmp_path / "runs" / run_id("agreement") / "adapters" / f"v{version}"
        learned.append(adapter)
        served.append(reader.read(folder, digest=manifest.adapter_digest))
    _, *on_adapters = sampled(WEIGHTS, served)

    def logits_of(adapter):
        def logits(ids):
            layout = lay_out([ids.numpy().astype(np.int64)], [len(ids)])
            return trainer.logits(trainer.hidden(layout, AdapterStack([adapter], trainer.targets, [len(ids)])))

        return logits

    for adapter, sequences in zip(learned, on_adapters, strict=True):
        assert_agreement(logits_of(adapter), sequences)
    # A teacher scores what another policy sampled: the second adapter's view of the first one's tokens, at each temperature.
    first, _ = on_adapters
    scored = [
        make_sequence([*s.prompt, *s.token_ids], served[1], sampling=s.sampling, max_new=0, prompt_top_logprobs=0) for s in first
    ]
    run(make_core(WEIGHTS, sequences_max=8, kv_cache_bytes=2**24), *scored)
    gaps = torch.cat([prompt_gaps(logits_of(learned[1]), sequence) for sequence in scored])
    assert gaps.mean() <= MEAN_BOUND and gaps.max() <= WORST_BOUND
    tempered = [prompt_gaps(logits_of(learned[1]), s, temperature=1.0) for s in scored if s.sampling.temperature != 1.0]
    assert len(tempered) == 2 and min(gaps.mean() for gaps in tempered) > 1e-2, "the temperature must matter"


def test_version_zero_answers_as_the_base_does(tmp_path):
    folder = make_model(tmp_path / "model")
    tensors = adapter_tensors(folder, seed=1)
    tensors = {name: t * 0 if ".lora_B." in name else t for name, t in tensors.items()}
    write_adapter(tmp_path / "v0", folder, tensors=tensors)
    base, version_zero = sampled(folder, [reader_of(tmp_path, folder).read(tmp_path / "v0", digest=None)])
    assert [s.token_ids for s in base] == [s.token_ids for s in version_zero]
