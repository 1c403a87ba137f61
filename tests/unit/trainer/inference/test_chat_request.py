"""A parameter is honoured, or it asks for nothing, or the request is refused by its name."""

import json

import pytest

from trainer.contracts.generation import TOKENS_OUT_MAX, LoadAdapter
from trainer.inference.chat_request import INERT, NEUTRAL, ChatRequest, parse_chat, parse_generate, parse_wire, template_messages
from trainer.inference.errors import BadRequest


def chat(**fields):
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}]} | fields).encode()


def generate(**sampling):
    return json.dumps({"model": "m", "token_ids": [1], "sampling_params": sampling}).encode()


def test_defaults_are_openais():
    sampling = parse_chat(chat()).sampling()
    assert (sampling.temperature, sampling.top_p, sampling.max_tokens) == (1.0, 1.0, TOKENS_OUT_MAX)


def test_sampling_takes_every_field():
    fields = {"temperature": 0.5, "top_p": 0.9, "top_k": 3, "min_p": 0.1, "seed": 7, "stop_token_ids": [5]}
    sampling = parse_chat(chat(max_tokens=9, max_completion_tokens=4, **fields)).sampling()
    assert sampling.max_tokens == 4
    assert {name: getattr(sampling, name) for name in fields} == fields


@pytest.mark.parametrize("name", sorted(INERT))
def test_inert_parameters_pass(name):
    assert parse_chat(chat(**{name: "anything"})) == parse_chat(chat())
    assert parse_generate(generate(**{name: 3})) == parse_generate(generate())


@pytest.mark.parametrize("name", sorted(set(NEUTRAL) - set(ChatRequest.model_fields)))
def test_unimplemented_parameters_pass_with_their_neutral_value_only(name):
    for value in NEUTRAL[name]:
        parse_chat(chat(**{name: value}))
    with pytest.raises(BadRequest) as refusal:
        parse_chat(chat(**{name: 17}))
    assert (refusal.value.param, refusal.value.code) == (name, "unsupported_value")


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (chat(temprature=1), "temprature"),
        (chat(temperature=-1), "temperature"),
        (chat(max_tokens=0), "max_tokens"),
        (chat(messages=[]), "messages"),
        (chat(model=None), "model"),
        (chat(tool_choice="required"), "tool_choice"),
        (chat(top_p=0), "top_p"),
    ],
)
def test_chat_refusals_name_the_field(body, param):
    with pytest.raises(BadRequest) as refusal:
        parse_chat(body)
    assert refusal.value.param == param


@pytest.mark.parametrize(
    ("body", "param"),
    [
        (generate(temperature="hot"), "sampling_params.temperature"),
        (generate(max_tokens=10**9), "sampling_params.max_tokens"),
        (generate(best=1), "best"),
        (generate(stop=["x"]), "stop"),
        (b'{"model":"m","token_ids":[]}', "token_ids"),
        (b'{"model":"m","token_ids":["a"]}', "token_ids.0"),
        (b'{"token_ids":[1]}', "model"),
    ],
)
def test_generate_refusals_name_the_field(body, param):
    with pytest.raises(BadRequest) as refusal:
        parse_generate(body)
    assert refusal.value.param == param


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"\xff"])
def test_bodies_that_are_no_objects_are_refused(body):
    for parse in (parse_chat, parse_generate, lambda data: parse_wire(LoadAdapter, data)):
        with pytest.raises(BadRequest) as refusal:
            parse(body)
        assert refusal.value.code == "invalid_json"


def test_messages_are_brought_into_the_templates_shape():
    call = {"id": "1", "type": "function", "function": {"name": "add", "arguments": '{"a": 3}'}}
    broken = {"id": "2", "type": "function", "function": {"name": "add", "arguments": "{a"}}
    rendered = template_messages(
        [
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": None, "tool_calls": [call, broken], "refusal": None},
        ]
    )
    assert rendered[0] == {"role": "user", "content": "ab"}
    assert rendered[1]["content"] == ""
    assert [c["function"]["arguments"] for c in rendered[1]["tool_calls"]] == [{"a": 3}, "{a"]


@pytest.mark.parametrize(
    "message",
    [
        {"content": "x"},
        {"role": "user", "content": 3},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]},
        {"role": "assistant", "tool_calls": [{"function": "add"}]},
        {"role": "assistant", "tool_calls": ["add"]},
    ],
)
def test_messages_that_cannot_be_rendered_are_refused(message):
    with pytest.raises(BadRequest, match=r"messages\.0"):
        template_messages([message])
