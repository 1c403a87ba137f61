"""The model that ships passes its gates, and so does what its script makes. Its tokenizer is bytes."""

import random

import pytest
import torch
from transformers import AutoTokenizer, LlamaForCausalLM

from trainer.contracts.catalogue import load_catalogue, model_folder
from trainer.models.make_tiny import make
from trainer.models.tiny_recipe import gates
from trainer.models.tiny_recipe.lessons import Turn, call_text, prompt_of, tool_system
from trainer.models.tiny_recipe.tokenizer import MARKERS, TURN_END, decode, encode

SPEC = load_catalogue()["tiny"]


def load(folder) -> LlamaForCausalLM:
    return LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def test_the_shipped_weights_pass_the_gates():
    folder = model_folder(SPEC.weights)
    assert (folder / "model.safetensors").stat().st_size < 300_000
    report = gates.measure(load(folder))
    assert report.passed, report


@pytest.mark.heavy
@pytest.mark.timeout(1800)
def test_what_the_script_makes_passes_the_gates(tmp_path):
    while_making = make(tmp_path, seed=0)
    assert while_making.passed, while_making
    # The gates sample: a token on the edge may fall either way between the model in memory and the one read back.
    written = gates.measure(load(tmp_path / "weights"))
    assert written.passed, written
    assert (tmp_path / "tokenizer" / "tokenizer.json").read_bytes() == (
        model_folder(SPEC.tokenizer) / "tokenizer.json"
    ).read_bytes()


def test_the_gates_can_fail():
    untrained = LlamaForCausalLM(load(model_folder(SPEC.weights)).config)
    report = gates.measure(untrained, count=20)
    assert not report.passed and report.rule_skill == 0.0 and report.tool_skill == 0.0


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(model_folder(SPEC.tokenizer))


def test_a_byte_is_its_own_id(tokenizer):
    rng = random.Random(0)
    texts = [
        "".join(chr(rng.choice([rng.randrange(32, 127), rng.randrange(0x20, 0xD7FF)])) for _ in range(20)) for _ in range(300)
    ]
    texts += [" two  spaces\n\ttab ", "é", "".join(MARKERS), f"x{MARKERS[3]}y{MARKERS[1]}"]
    for text in texts:
        ids = tokenizer.encode(text, add_special_tokens=False)
        assert ids == encode(text)
        assert tokenizer.decode(ids) == text == decode(ids)
    assert tokenizer.eos_token_id == TURN_END


TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {"a": {}, "b": {}}}}}
    for name in ("add", "sub", "max", "min")
]


def test_the_chat_template_renders_what_the_lessons_taught(tokenizer):
    def rendered(messages, tools=None):
        return tokenizer.apply_chat_template(messages, tools=tools, add_generation_prompt=True, return_dict=False)

    user = {"role": "user", "content": "3+4?"}
    assert rendered([user]) == prompt_of([Turn("user", "3+4?")])
    system = {"role": "system", "content": "Hi"}
    assert rendered([system, user]) == prompt_of([Turn("system", "Hi"), Turn("user", "3+4?")])
    asked = [Turn("system", tool_system("Hi")), Turn("user", "3+4?")]
    assert rendered([system, user], TOOLS) == prompt_of(asked)
    for arguments in ({"a": 3, "b": 4}, '{"a":3,"b":4}'):
        call = {"type": "function", "function": {"name": "add", "arguments": arguments}}
        answered = [system, user, {"role": "assistant", "content": "", "tool_calls": [call]}, {"role": "tool", "content": "7"}]
        assert rendered(answered, TOOLS) == prompt_of([*asked, Turn("assistant", call_text("add", 3, 4)), Turn("tool", "7")])
