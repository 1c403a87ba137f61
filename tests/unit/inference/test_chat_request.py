"""Promise: the engine is sent what the caller set and what is ours to set, and nothing that is the caller's to smuggle in."""

import pydantic
import pytest

from controlplane.inference.schemas import ChatRequest

MESSAGES = [{"role": "user", "content": "hi", "name": "x"}]


def engine_body(**fields: object) -> dict:
    asked = ChatRequest.model_validate({"model": "tiny", "messages": MESSAGES} | fields)
    return asked.engine_body(engine_name="crun.v1", cache_salt="team")


def test_only_what_was_set_is_passed_on():
    assert engine_body() == {"model": "crun.v1", "messages": MESSAGES, "cache_salt": "team", "stream": False}


def test_both_spellings_of_the_limit_are_one():
    assert engine_body(max_completion_tokens=7)["max_tokens"] == engine_body(max_tokens=7)["max_tokens"] == 7
    with pytest.raises(pydantic.ValidationError, match="give one of"):
        engine_body(max_tokens=7, max_completion_tokens=7)


def test_a_stream_asks_for_what_the_accounts_need():
    body = engine_body(stream=True, stream_options={"include_usage": False})
    assert body["stream_options"] == {"include_usage": True} and body["return_token_ids"] is True


def test_what_has_no_effect_is_dropped():
    assert engine_body(user="u", metadata={"a": "b"}, store=True) == engine_body()


@pytest.mark.parametrize("name", ["cache_salt", "return_token_ids", "ignore_eos", "lora_name", "prompt_logprobs"])
def test_the_engines_own_controls_are_refused_by_name(name):
    with pytest.raises(pydantic.ValidationError) as refusal:
        engine_body(**{name: 1})
    assert refusal.value.errors()[0]["loc"] == (name,)


@pytest.mark.parametrize(("name", "value"), [("n", 2), ("temperature", 6), ("top_p", 0), ("messages", []), ("max_tokens", 0)])
def test_out_of_range_is_refused_by_name(name, value):
    with pytest.raises(pydantic.ValidationError) as refusal:
        engine_body(**{name: value})
    assert refusal.value.errors()[0]["loc"] == (name,)
