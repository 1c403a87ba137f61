"""The real model: engine and trainer compute what transformers computes, from the same tokens, and stop where it stops."""

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer, LlamaForCausalLM

from tests.factories.engines import make_sequence, run
from trainer.contracts.adapters import LoraSpec
from trainer.contracts.catalogue import model_folder
from trainer.contracts.generation import SamplingParams
from trainer.core.adapter_stack import AdapterStack
from trainer.core.adapters import Adapter
from trainer.core.layout import lay_out
from trainer.core.llama import Llama
from trainer.inference.core import EngineCore
from trainer.inference.limits import EngineLimits
from trainer.inference.llama import load_llama
from trainer.inference.text import TextCodec

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(900)]

DIALOGUES = [
    [{"role": "user", "content": "What is the capital of France?"}],
    [{"role": "system", "content": "Quote the first three words of the line."}, {"role": "user", "content": "Down the hole"}],
]
BOUND = 1e-4
NEW_TOKENS = 12


@pytest.fixture
def codec(smollm2):
    return TextCodec(model_folder(smollm2.tokenizer))


def test_the_chat_template_gives_the_tokenizers_own_ids_and_ends_a_turn_by_its_own_token(smollm2, codec):
    theirs = AutoTokenizer.from_pretrained(model_folder(smollm2.tokenizer))
    for dialogue in DIALOGUES:
        text = theirs.apply_chat_template(dialogue, tokenize=False, add_generation_prompt=True)
        assert codec.render_chat(dialogue, None) == theirs(text, add_special_tokens=False)["input_ids"]
    assert codec.token_text(codec.eos_id) == "<|im_end|>"


def test_engine_and_trainer_agree_with_transformers(smollm2, codec):
    """Sampled in one batch by the engine, recomputed token by token by the two others, in float32."""
    folder = model_folder(smollm2.weights)
    prompts = [codec.render_chat(dialogue, None) for dialogue in DIALOGUES]
    sampled = _sampled(folder, prompts, smollm2.context_tokens)
    theirs = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)
    rows = [np.array(sequence.prompt + sequence.token_ids) for sequence in sampled]
    for sequence, row, learned in zip(sampled, rows, _trainer_logprobs(folder, rows), strict=True):
        with torch.no_grad():
            expected = theirs(torch.from_numpy(row)[None]).logits[0].log_softmax(-1)
        said = torch.tensor(row[len(sequence.prompt) :])[:, None]
        before = slice(len(sequence.prompt) - 1, -1)
        served = torch.tensor(sequence.logprobs)
        assert (served - expected[before].gather(1, said)[:, 0]).abs().max() <= BOUND
        assert (learned[before] - expected[before]).abs().max() <= BOUND


def test_the_model_answers_a_plain_question(smollm2, codec):
    (sequence,) = _sampled(model_folder(smollm2.weights), [codec.render_chat(DIALOGUES[0], None)], 2048, temperature=0.0)
    assert "Paris" in codec.tokenizer.decode(sequence.token_ids)
    assert sequence.token_ids[-1] == codec.eos_id


def _sampled(folder, prompts, context, *, temperature=1.0):
    model = load_llama(folder, device=torch.device("cpu"), dtype=torch.float32, context_max=context)
    core = EngineCore(model, EngineLimits(sequences_max=4, step_tokens_max=64))
    sampling = SamplingParams(temperature=temperature, seed=1, max_tokens=NEW_TOKENS)
    sequences = [
        make_sequence(prompt, max_new=NEW_TOKENS, sampling=sampling, cache_salt="team", stop_ids=frozenset({2}))
        for prompt in prompts
        for _ in range(2 if temperature else 1)
    ]
    run(core, *sequences)
    return sequences


def _trainer_logprobs(folder, rows):
    """One pass over all rows, those that begin alike together."""
    model = Llama(folder)
    layout = lay_out(rows, [sum(map(len, rows))])
    fresh = Adapter(LoraSpec(), model.targets, torch.float32)
    with torch.no_grad():
        hidden = model.hidden(layout, AdapterStack([fresh], model.targets, layout.group_rows))
        return [model.logits(hidden[torch.from_numpy(places)]).log_softmax(-1) for places in layout.sample_rows]
