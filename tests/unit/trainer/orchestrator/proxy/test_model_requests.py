"""The pins on a model call."""

import json
from dataclasses import replace

import pytest

from trainer.contracts.generation import GenerateReply
from trainer.orchestrator.proxy.model_requests import (
    BadModelRequest,
    EngineContradiction,
    Pins,
    checked_generate,
    pinned_chat,
    pinned_generate,
)

PINS = Pins(cache_salt="team", temperature=0.7, max_tokens=64, context_tokens=100)


def asked(**sampling) -> bytes:
    body = {"model": "m", "token_ids": [1, 2], "cache_salt": "theirs", "sampling_params": sampling}
    return json.dumps(body).encode()


def test_salt_distribution_and_length_are_ours():
    request = pinned_generate(asked(temperature=2.0, top_p=0.5, top_k=3, min_p=0.2, max_tokens=9999, seed=7), PINS)
    sampling = request.sampling_params
    assert request.cache_salt == "team"
    assert (sampling.temperature, sampling.top_p, sampling.top_k, sampling.min_p, sampling.seed) == (0.7, 1.0, -1, 0.0, None)
    assert (sampling.max_tokens, sampling.logprobs) == (64, 1)


def test_stop_tokens_and_a_shorter_length_pass():
    sampling = pinned_generate(asked(max_tokens=5, stop_token_ids=[258], routed_experts_prompt_start=3), PINS).sampling_params
    assert (sampling.max_tokens, sampling.stop_token_ids) == (5, [258])


def test_the_length_never_passes_the_context():
    body = json.dumps({"model": "m", "token_ids": list(range(90)), "sampling_params": {"max_tokens": 50}}).encode()
    assert pinned_generate(body, PINS).sampling_params.max_tokens == 10
    with pytest.raises(BadModelRequest, match="token_ids"):
        pinned_generate(json.dumps({"model": "m", "token_ids": [0] * 100}).encode(), PINS)


def test_chat_fields_pass_by_name_and_the_rest_is_pinned_or_dropped():
    request = pinned_chat(
        {"model": "m", "messages": [], "stream": True, "max_completion_tokens": 500, "user": "x", "temperature": 2}, PINS
    )
    assert request["max_tokens"] == 64
    assert request["temperature"] == 0.7
    assert request["stream_options"] == {"include_usage": True}
    assert "user" not in request
    with pytest.raises(BadModelRequest, match="n:"):
        pinned_chat({"model": "m", "messages": [], "n": 2}, PINS)


def reply(**changes) -> GenerateReply:
    content = [{"token": "a", "logprob": -0.1}, {"token": "b", "logprob": -0.2}]
    choice = {"token_ids": [5, 6], "logprobs": {"content": content}, "finish_reason": "stop"}
    fields = {
        "id": "i",
        "request_id": "i",
        "model": "m",
        "choices": [choice],
        "usage": {"prompt_tokens": 2, "completion_tokens": 2, "total_tokens": 4},
        "adapter": {"name": "m", "digest": "a" * 64},
    }
    return GenerateReply.model_validate(fields | changes)


def test_log_probabilities_are_spelled_by_token_id():
    checked = checked_generate(reply(), digest="a" * 64)
    assert [entry.token for entry in checked.choices[0].logprobs.content] == ["token_id:5", "token_id:6"]


def test_other_weights_or_misaligned_log_probabilities_are_contradictions():
    with pytest.raises(EngineContradiction, match="weights"):
        checked_generate(reply(), digest="b" * 64)
    short = {"token_ids": [5, 6], "logprobs": {"content": []}, "finish_reason": "stop"}
    with pytest.raises(EngineContradiction, match="log-probabilities"):
        checked_generate(reply(choices=[short]), digest="a" * 64)


@pytest.mark.parametrize("kind", ["image_url", "input_audio"])
def test_a_picture_for_a_model_that_reads_text_alone_is_refused_by_its_place(kind):
    messages = [{"role": "user", "content": "?"}, {"role": "user", "content": [{"type": "text"}, {"type": kind}]}]
    with pytest.raises(BadModelRequest, match=rf"messages\.1\.content\.1: {kind}: the base model reads text alone"):
        pinned_chat({"model": "tiny", "messages": messages}, PINS)
    assert pinned_chat({"model": "tiny", "messages": messages}, replace(PINS, pictures=True))["messages"] == messages


def test_pictures_of_a_token_prompt_are_refused_or_passed_on_as_they_are():
    body = json.dumps({"model": "m", "token_ids": [1], "content_parts": [{"type": "image_url", "url": "data:x;base64,eA=="}]})
    with pytest.raises(BadModelRequest, match=r"content_parts\.0: image_url: the base model reads text alone"):
        pinned_generate(body.encode(), PINS)
    (part,) = pinned_generate(body.encode(), replace(PINS, pictures=True)).content_parts
    assert part.url == "data:x;base64,eA=="
