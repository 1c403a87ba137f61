"""The chat template that SmolLM2 gets: equal to the model's own where there are no tools, and able to spell tools and calls."""

import json

from jinja2 import Environment

from trainer.contracts.catalogue import catalogue_folder, load_catalogue
from trainer.inference.tool_calls import split_tool_calls

TEMPLATE = (catalogue_folder() / str(load_catalogue()["smollm2"].chat_template)).read_text()
# The model's own words.
DEFAULT_SYSTEM = "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
ADD = {
    "type": "function",
    "function": {"name": "add", "description": "The sum of a and b.", "parameters": {"properties": {"a": {}, "b": {}}}},
}
CALL = {"function": {"name": "add", "arguments": {"a": 3, "b": 4}}}


def render(*messages, tools=None, generate=False) -> str:
    environment = Environment(trim_blocks=True, lstrip_blocks=True)
    environment.filters["tojson"] = lambda value: json.dumps(value)
    return environment.from_string(TEMPLATE).render(messages=messages, tools=tools, add_generation_prompt=generate)


def turn(role: str, content: str) -> dict:
    return {"role": role, "content": content}


def test_without_tools_it_is_the_models_own_template():
    said = "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nyes<|im_end|>\n"
    assert render(turn("user", "hi"), turn("assistant", "yes")) == DEFAULT_SYSTEM + said
    system = "<|im_start|>system\nBe brief.<|im_end|>\n"
    opened = system + "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"
    assert render(turn("system", "Be brief."), turn("user", "hi"), generate=True) == opened


def test_tools_stand_in_the_system_turn_once():
    text = render(turn("system", "Be brief."), turn("user", "hi"), tools=[ADD])
    assert text.count("<|im_start|>system") == 1
    assert text.startswith("<|im_start|>system\nBe brief.\nTools:\n- add(a, b): The sum of a and b.\n")
    assert DEFAULT_SYSTEM not in render(turn("user", "hi"), tools=[ADD])


def test_a_call_is_spelled_as_the_engine_reads_it():
    text = render(turn("user", "3+4?"), turn("assistant", "") | {"tool_calls": [CALL]}, turn("tool", "7"), tools=[ADD])
    reply = text.split("<|im_start|>assistant\n")[1].split("<|im_end|>")[0]
    rest, (call,) = split_tool_calls(reply)
    assert (rest, call.name, json.loads(call.arguments)) == ("", "add", {"a": 3, "b": 4})
    assert text.endswith("<|im_start|>tool\n7<|im_end|>\n")
