"""The HTTP face in one process: vLLM's and OpenAI's shapes, identities on every reply, and OpenAI's errors."""

import asyncio
import json
import math

import httpx
import pytest
import torch

from tests.factories.engines import small_limits
from tests.factories.tiny_llama import model_spec, write_adapter
from trainer.contracts.generation import AdapterLoaded, GenerateReply, ModelCard, ScoreReply
from trainer.inference.assembly import torch_service
from trainer.inference.server import make_app

HELLO = [{"role": "user", "content": "hi"}]


@pytest.fixture
async def make_client(model, tmp_path):
    stack = []

    async def make(*, pool_token=None, **limits):
        service = torch_service(
            model_spec(model),
            artifacts=tmp_path,
            limits=small_limits(**limits),
            on_fatal=lambda: None,
            device=torch.device("cpu"),
            dtype=torch.float32,
        )
        app = make_app(service, pool_token=pool_token)
        lifespan = app.router.lifespan_context(app)
        await lifespan.__aenter__()
        client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://engine")
        stack.append((client, lifespan))
        return client

    yield make
    for client, lifespan in stack:
        await client.aclose()
        await lifespan.__aexit__(None, None, None)


@pytest.fixture
async def client(make_client):
    return await make_client()


@pytest.fixture
def adapter(model, tmp_path):
    return {"lora_name": "run.v1", "lora_path": str(tmp_path / "v1"), "digest": write_adapter(tmp_path / "v1", model, seed=3)}


async def chat(client, **fields):
    return await client.post("/v1/chat/completions", json={"model": "random", "messages": HELLO, "max_tokens": 8} | fields)


def events(response):
    lines = [line.removeprefix("data: ") for line in response.text.split("\n\n") if line]
    assert lines[-1] == "[DONE]"
    return [json.loads(line) for line in lines[:-1]]


async def test_health_generates_and_remembers(client):
    assert (await client.get("/health")).json() == {"status": "ok"}
    text = (await client.get("/metrics")).text
    assert 'rootstock_engine_requests_finished_total{reason="length"} 1.0' in text, "the probe at start is still fresh"


async def test_health_is_503_when_no_token_comes(make_client):
    client = await make_client(health_fresh_s=0.0, health_deadline_s=30.0)
    app = client._transport.app
    await app.state.service.engine.stop()
    assert (await client.get("/health")).status_code == 503


async def test_models_lists_base_and_adapters(client, adapter):
    loaded = AdapterLoaded.model_validate((await client.post("/v1/load_lora_adapter", json=adapter)).json())
    assert (loaded.lora_name, loaded.digest) == ("run.v1", adapter["digest"])
    base, card = [ModelCard.model_validate(card) for card in (await client.get("/v1/models")).json()["data"]]
    assert (base.id, base.parent, base.max_model_len) == ("random", None, 256)
    assert (card.id, card.parent, card.digest) == ("run.v1", "random", adapter["digest"])


async def test_a_chat_answer_has_openais_shape_and_our_identity(client):
    body = (await chat(client, logprobs=True, top_logprobs=2, return_token_ids=True, temperature=0)).json()
    choice = body["choices"][0]
    assert body["object"] == "chat.completion"
    assert body["adapter"] == {"name": "random", "digest": body["system_fingerprint"]}
    assert body["usage"] == {
        "prompt_tokens": len(body["prompt_token_ids"]),
        "completion_tokens": 8,
        "total_tokens": 8 + len(body["prompt_token_ids"]),
    }
    assert choice["finish_reason"] == "length"
    assert len(choice["token_ids"]) == len(choice["logprobs"]["content"]) == 8
    for entry in choice["logprobs"]["content"]:
        assert entry["top_logprobs"][0]["logprob"] == entry["logprob"]  # greedy
        assert len(entry["top_logprobs"]) == 2


async def test_a_stream_adds_up_to_the_whole_answer(client):
    fields = {"seed": 4, "logprobs": True, "return_token_ids": True}
    whole = (await chat(client, **fields)).json()
    response = await chat(client, stream=True, stream_options={"include_usage": True}, **fields)
    chunks = events(response)
    assert response.headers["content-type"].startswith("text/event-stream")
    text = "".join(c["choices"][0]["delta"].get("content") or "" for c in chunks if c["choices"])
    tokens = [t for c in chunks if c["choices"] for t in c["choices"][0].get("token_ids", [])]
    assert text == whole["choices"][0]["message"]["content"]
    assert tokens == whole["choices"][0]["token_ids"]
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert chunks[0]["prompt_token_ids"] == whole["prompt_token_ids"]
    assert chunks[-2]["choices"][0]["finish_reason"] == "length"
    assert (chunks[-1]["choices"], chunks[-1]["usage"]) == ([], whole["usage"])
    assert {c["system_fingerprint"] for c in chunks} == {whole["system_fingerprint"]}


async def test_without_include_usage_the_last_chunk_carries_it(client):
    chunks = events(await chat(client, stream=True))
    assert chunks[-1]["choices"][0]["finish_reason"] == "length"
    assert chunks[-1]["usage"]["completion_tokens"] == 8


async def test_a_stop_string_ends_the_answer_before_it(client):
    free = (await chat(client, temperature=0, max_tokens=60)).json()
    text = free["choices"][0]["message"]["content"]
    stop = text[10:12]
    body = (await chat(client, temperature=0, max_tokens=60, stop=stop)).json()
    assert body["choices"][0]["message"]["content"] == text[: text.index(stop)]
    assert body["choices"][0]["finish_reason"] == "stop"


async def test_generate_has_one_finite_logprob_a_token_and_scores_the_prompt(client):
    asked = {
        "model": "random",
        "token_ids": [1, 2, 3, 4],
        "sampling_params": {"max_tokens": 6, "prompt_logprobs": 1, "logprobs": 1},
    }
    response = await client.post("/inference/v1/generate", json=asked, headers={"X-Request-ID": "abc"})
    reply = GenerateReply.model_validate(response.json())
    choice = reply.choices[0]
    assert [entry.token for entry in choice.logprobs.content] == [f"token_id:{t}" for t in choice.token_ids]
    assert all(math.isfinite(entry.logprob) and entry.logprob <= 0 for entry in choice.logprobs.content)
    assert (reply.request_id, reply.usage.completion_tokens, choice.finish_reason) == ("abc", 6, "length")
    assert reply.prompt_logprobs[0] is None
    assert [next(iter(entry)) for entry in reply.prompt_logprobs[1:]] == ["2", "3", "4"]


async def test_score_answers_what_sampling_answered_token_by_token(client, adapter):
    await client.post("/v1/load_lora_adapter", json=adapter)
    sampling = {"max_tokens": 6, "temperature": 0.6, "seed": 2, "ignore_eos": True}
    asked = {"model": "run.v1", "token_ids": [1, 2, 3, 4], "sampling_params": sampling}
    made = GenerateReply.model_validate((await client.post("/inference/v1/generate", json=asked)).json()).choices[0]
    whole = [1, 2, 3, 4, *made.token_ids]
    replies = [
        ScoreReply.model_validate((await client.post("/inference/v1/score", json=body)).json())
        for body in (
            {"model": "run.v1", "token_ids": whole, "temperature": 0.6},
            {"model": "run.v1", "token_ids": whole},
            {"model": "random", "token_ids": whole, "temperature": 0.6},
        )
    ]
    assert [(reply.logprobs[0], len(reply.logprobs)) for reply in replies] == [(None, 10)] * 3
    gaps = [
        max(abs(score - entry.logprob) for score, entry in zip(reply.logprobs[4:], made.logprobs.content, strict=True))
        for reply in replies
    ]
    assert gaps[0] < 5e-5 and min(gaps[1:]) > 1e-2, "the temperature and the adapter are those that were asked for"
    assert (replies[0].adapter.name, replies[0].adapter.digest) == ("run.v1", adapter["digest"])
    assert (replies[0].usage.prompt_tokens, replies[0].usage.completion_tokens) == (10, 0)


@pytest.mark.parametrize(
    ("wrong", "param", "status"),
    [
        ({"model": "nobody"}, "model", 404),
        ({"token_ids": [1]}, "token_ids", 400),
        ({"token_ids": [1, 10**6]}, "token_ids", 400),
        ({"token_ids": [1] * 257}, "token_ids", 400),
        ({"temperature": 0}, "temperature", 400),
        ({"top_p": 0.5}, "top_p", 400),
    ],
)
async def test_score_refuses_by_name(client, wrong, param, status):
    response = await client.post("/inference/v1/score", json={"model": "random", "token_ids": [1, 2]} | wrong)
    assert (response.status_code, response.json()["error"]["param"]) == (status, param)


async def test_an_adapter_answers_under_its_name_until_it_is_unloaded(client, adapter):
    await client.post("/v1/load_lora_adapter", json=adapter)
    body = (await chat(client, model="run.v1", temperature=0)).json()
    assert (body["adapter"]["name"], body["system_fingerprint"]) == ("run.v1", adapter["digest"])
    assert body["choices"] != (await chat(client, temperature=0)).json()["choices"]
    assert (await client.post("/v1/unload_lora_adapter", json={"lora_name": "run.v1"})).status_code == 200
    for response in (
        await chat(client, model="run.v1"),
        await client.post("/v1/unload_lora_adapter", json={"lora_name": "run.v1"}),
    ):
        assert response.status_code == 404
        assert "run.v1" in response.json()["error"]["message"]


async def test_max_tokens_is_bounded_by_the_context(client):
    body = {"model": "random", "token_ids": [5] * 250, "sampling_params": {"max_tokens": 100, "ignore_eos": True}}
    assert (await client.post("/inference/v1/generate", json=body)).json()["usage"]["total_tokens"] == 256


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/v1/chat/completions", {"model": "none", "messages": HELLO}, 404, "model_not_found"),
        ("/v1/chat/completions", {"model": "random", "messages": HELLO, "n": 2}, 400, "unsupported_value"),
        ("/v1/chat/completions", {"model": "random", "messages": HELLO, "tpo_p": 1}, 400, "unknown_parameter"),
        ("/v1/chat/completions", {"model": "random", "messages": HELLO, "top_logprobs": 2}, 400, "invalid_value"),
        (
            "/v1/chat/completions",
            {"model": "random", "messages": HELLO, "logprobs": True, "top_logprobs": 21},
            400,
            "invalid_value",
        ),
        (
            "/v1/chat/completions",
            {"model": "random", "messages": [{"role": "user", "content": "x" * 300}]},
            400,
            "context_length_exceeded",
        ),
        ("/inference/v1/generate", {"model": "random", "token_ids": [261]}, 400, "invalid_value"),
        ("/inference/v1/generate", {"model": "random", "token_ids": [-1]}, 400, "invalid_value"),
        ("/inference/v1/generate", {"model": "random", "token_ids": [1] * 256}, 400, "context_length_exceeded"),
        ("/v1/load_lora_adapter", {"lora_name": "x"}, 400, "invalid_value"),
        ("/v1/load_lora_adapter", {"lora_name": "x", "lora_path": "/etc"}, 400, "invalid_adapter"),
        ("/v1/nothing", {}, 404, "route_not_found"),
    ],
)
async def test_refusals_are_openais_errors(client, path, body, status, code):
    response = await client.post(path, json=body)
    error = response.json()["error"]
    assert (response.status_code, error["code"]) == (status, code)
    assert error["message"]
    assert set(error) == {"message", "type", "code", "param"}


async def test_a_wrong_method_is_405(client):
    response = await client.get("/v1/chat/completions")
    assert (response.status_code, response.json()["error"]["code"]) == (405, "method_not_allowed")


async def test_a_missing_version_is_404_and_a_bad_one_400_while_others_are_served(client, adapter, tmp_path):
    missing = await client.post("/v1/load_lora_adapter", json={"lora_name": "x", "lora_path": str(tmp_path / "none")})
    wrong = await client.post("/v1/load_lora_adapter", json=adapter | {"digest": "0" * 64})
    assert (missing.status_code, wrong.status_code) == (404, 400)
    assert wrong.json()["error"]["code"] == "digest_mismatch"
    assert (await chat(client)).status_code == 200


async def test_other_weights_under_a_loaded_name_are_409(client, adapter, model, tmp_path):
    assert (await client.post("/v1/load_lora_adapter", json=adapter)).status_code == 200
    assert (await client.post("/v1/load_lora_adapter", json=adapter)).status_code == 200
    other = adapter | {"lora_path": str(tmp_path / "v2"), "digest": write_adapter(tmp_path / "v2", model, seed=4)}
    response = await client.post("/v1/load_lora_adapter", json=other)
    assert (response.status_code, response.json()["error"]["code"]) == (409, "name_taken")


async def test_the_bearer_guards_everything_but_health(make_client):
    client = await make_client(pool_token="secret")
    assert (await client.get("/health")).status_code == 200
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "secret"}):
        response = await client.get("/v1/models", headers=headers)
        assert (response.status_code, response.json()["error"]["code"]) == (401, "invalid_api_key")
    assert (await client.get("/v1/models", headers={"Authorization": "Bearer secret"})).status_code == 200


async def test_a_body_beyond_the_limit_is_413(make_client):
    client = await make_client(body_bytes_max=1000)
    assert (await client.post("/v1/chat/completions", content=b"x" * 1001)).status_code == 413


async def test_a_deadline_is_504_and_inside_a_stream_an_error_event(make_client):
    client = await make_client(request_deadline_s=-1.0)
    assert (await chat(client)).status_code == 504
    streamed = events(await chat(client, stream=True))
    assert streamed[-1]["error"]["code"] == "deadline_exceeded"


async def test_a_full_queue_is_503_with_retry_after(make_client):
    client = await make_client(sequences_max=1, waiting_max=0)
    replies = await asyncio.gather(*(chat(client, max_tokens=100) for _ in range(6)))
    assert {reply.status_code for reply in replies} == {200, 503}
    refused = next(reply for reply in replies if reply.status_code == 503)
    assert (refused.json()["error"]["code"], refused.headers["retry-after"]) == ("saturated", "1")
