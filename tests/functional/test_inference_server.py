"""The inference server as its clients meet it: a process, a socket, the official SDK."""

import concurrent.futures
import json
import subprocess
import sys

import httpx
import openai
import pytest
import torch

from tests.factories.engine_process import engine_process, vllm_process, wait_for
from tests.factories.tiny_llama import write_adapter
from tests.numerics.recorded import TEAM, run_id
from trainer.contracts.adapters import LoraSpec, adapter_path
from trainer.contracts.catalogue import model_folder, weights_digest
from trainer.core.adapter_stack import AdapterStack
from trainer.core.adapters import Adapter
from trainer.core.layout import lay_out
from trainer.core.llama import Llama
from trainer.core.versions import VersionStore

WEIGHTS = model_folder("tiny/weights")
QUICK = ("--step-interval-ms", "1")
QUESTION = [{"role": "user", "content": "3+4?"}]
RUN = run_id("agreement")
PROMPT = [257, *b"user\n3+4?", 258, 10, 257, *b"assistant\n"]


@pytest.fixture(scope="module")
def artifacts(tmp_path_factory):
    return tmp_path_factory.mktemp("artifacts")


@pytest.fixture(scope="module", params=["torch", pytest.param("vllm", marks=[pytest.mark.heavy, pytest.mark.timeout(600)])])
def engine(request, artifacts):
    """Every test below that takes it holds for our own engine and for vLLM behind our routes."""
    with vllm_process(artifacts) if request.param == "vllm" else engine_process(artifacts, *QUICK) as running:
        yield running


@pytest.fixture(scope="module")
def sdk(engine):
    return openai.OpenAI(base_url=engine.url + "/v1", api_key="unused", max_retries=0)


@pytest.fixture(scope="module")
def versions(artifacts):
    """Eight adapters on disk: engine name → load request."""
    requests = {}
    for seed in range(8):
        path = artifacts / f"run{seed}" / "v1"
        digest = write_adapter(path, WEIGHTS, seed=seed, rank=(8, 8, 4, 16)[seed % 4])
        requests[f"run{seed}.v1"] = {"lora_name": f"run{seed}.v1", "lora_path": str(path), "digest": digest}
    return requests


@pytest.fixture
def loaded(engine, versions):
    """All eight, loaded for one test."""
    for request in versions.values():
        engine.post("/v1/load_lora_adapter", request).raise_for_status()
    yield versions
    for name in versions:
        engine.post("/v1/unload_lora_adapter", {"lora_name": name})


def generate(engine, model, *, max_tokens=32, **sampling):
    parameters = {"temperature": 0, "max_tokens": max_tokens, "ignore_eos": True} | sampling
    body = {"model": model, "token_ids": PROMPT, "sampling_params": parameters}
    return engine.post("/inference/v1/generate", body)


def tokens(response):
    return response.raise_for_status().json()["choices"][0]["token_ids"]


def streaming(engine, model, max_tokens):
    body = {"model": model, "messages": QUESTION, "max_tokens": max_tokens, "temperature": 0, "stream": True}
    body |= {"ignore_eos": True, "return_token_ids": True}
    return httpx.stream("POST", engine.url + "/v1/chat/completions", json=body, timeout=60)


def stream_tokens(lines):
    chunks = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    return [t for c in chunks if c["choices"] for t in c["choices"][0].get("token_ids", [])], chunks


def test_the_sdk_gets_an_answer(engine, sdk):
    answer = sdk.chat.completions.create(model="tiny", messages=QUESTION, temperature=0, logprobs=True, top_logprobs=3)
    assert answer.choices[0].finish_reason == "stop"
    assert answer.choices[0].message.content.split()[0] in {"sum", "diff", "max", "min"}
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert len(answer.choices[0].logprobs.content) == answer.usage.completion_tokens
    digest = next(card["digest"] for card in engine.get("/v1/models").json()["data"] if card["id"] == "tiny")
    assert (answer.system_fingerprint, answer.adapter) == (digest, {"name": "tiny", "digest": digest})


def test_the_sdk_streams_the_same_answer(sdk):
    whole = sdk.chat.completions.create(model="tiny", messages=QUESTION, temperature=1, seed=11)
    stream = sdk.chat.completions.create(
        model="tiny", messages=QUESTION, temperature=1, seed=11, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert chunks[-1].usage == whole.usage


@pytest.mark.parametrize("stream", [False, True])
def test_the_sdk_gets_tool_calls(sdk, stream):
    parameters = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}}
    tools = [{"type": "function", "function": {"name": name, "parameters": parameters}} for name in ("add", "sub", "max", "min")]
    asked = {"model": "tiny", "messages": QUESTION, "tools": tools, "temperature": 0, "max_tokens": 80}
    if stream:
        chunks = [chunk.choices[0] for chunk in sdk.chat.completions.create(stream=True, **asked) if chunk.choices]
        calls = [call for choice in chunks for call in choice.delta.tool_calls or []]
        finish_reason = chunks[-1].finish_reason
        assert not any(choice.delta.content for choice in chunks)
    else:
        choice = sdk.chat.completions.create(**asked).choices[0]
        calls, finish_reason = choice.message.tool_calls, choice.finish_reason
    assert finish_reason == "tool_calls"
    assert calls[0].function.name in {"add", "sub", "max", "min"}
    assert json.loads(calls[0].function.arguments) == {"a": 3, "b": 4}


def test_the_sdk_raises_its_own_errors(sdk):
    with pytest.raises(openai.NotFoundError, match="nobody"):
        sdk.chat.completions.create(model="nobody.v1", messages=QUESTION)
    with pytest.raises(openai.BadRequestError) as refusal:
        sdk.chat.completions.create(model="tiny", messages=QUESTION, presence_penalty=1)
    assert refusal.value.param == "presence_penalty"


@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_adapters_together_answer_as_each_alone(engine, loaded, count):
    names = ["tiny", *list(loaded)[:count]]
    alone = {name: tokens(generate(engine, name)) for name in names}
    with concurrent.futures.ThreadPoolExecutor(max_workers=3 * len(names)) as pool:
        together = list(pool.map(lambda name: (name, tokens(generate(engine, name))), names * 3))
    assert all(found == alone[name] for name, found in together)
    assert len({tuple(found) for found in alone.values()}) == len(names)


def test_logprobs_are_those_that_the_trainer_recomputes(engine, artifacts):
    """Base and two published versions in one batch, at the sampling temperature: the pair that a run lives on."""
    trainer, store, served = Llama(WEIGHTS), VersionStore(artifacts, "tiny", weights_digest(WEIGHTS)), {"tiny": None}
    for version, rank in ((1, 8), (2, 32)):
        adapter = Adapter(LoraSpec(rank=rank, alpha=16), trainer.targets, torch.float32)
        adapter.params_P.normal_(0, 0.08, generator=torch.Generator().manual_seed(version))
        digest = store.write(RUN, TEAM, version, adapter, {}).adapter_digest
        request = {"lora_name": f"{RUN}.v{version}", "lora_path": str(artifacts / adapter_path(RUN, version)), "digest": digest}
        engine.post("/v1/load_lora_adapter", request).raise_for_status()
        served[request["lora_name"]] = adapter
    asked = [(name, temperature) for name in served for temperature in (1.0, 0.6, 1.7)] * 3
    with concurrent.futures.ThreadPoolExecutor(max_workers=len(asked)) as pool:
        replies = list(pool.map(lambda one: generate(engine, one[0], temperature=one[1]), asked))
    gaps = torch.cat([
        gap(trainer, served[name], reply.json()["choices"][0], temperature)
        for (name, temperature), reply in zip(asked, replies, strict=True)
    ])  # fmt: skip
    assert gaps.mean() <= 1e-5
    assert gaps.max() <= 2e-4


def gap(trainer, adapter, choice, temperature):
    """Per sampled token, how far the engine's log-probability is from the trainer's."""
    ids = torch.tensor([*PROMPT, *choice["token_ids"]])
    layout = lay_out([ids.numpy()], [len(ids)])
    fresh = adapter or Adapter(LoraSpec(), trainer.targets, torch.float32)
    with torch.no_grad():
        hidden = trainer.hidden(layout, AdapterStack([fresh], trainer.targets, [len(ids)]))
        logprobs = (trainer.logits(hidden)[:-1] / temperature).log_softmax(-1).gather(1, ids[1:, None])[len(PROMPT) - 1 :, 0]
    return (logprobs - torch.tensor([entry["logprob"] for entry in choice["logprobs"]["content"]])).abs()


def test_versions_come_and_go_while_others_stream(engine, versions):
    names = list(versions)
    engine.post("/v1/load_lora_adapter", versions[names[0]]).raise_for_status()
    alone = tokens(generate(engine, names[0], max_tokens=400))
    with streaming(engine, names[0], 400) as stream:
        lines = stream.iter_lines()
        received = [next(lines) for _ in range(3)]
        swap = engine.post("/v1/load_lora_adapter", versions[names[1]]).raise_for_status().json()
        assert engine.post("/v1/unload_lora_adapter", {"lora_name": names[0]}).status_code == 200
        assert generate(engine, names[0]).status_code == 404
        newcomer = tokens(generate(engine, names[1]))
        received += lines
    found, chunks = stream_tokens(received)
    assert found == alone, "a version stays as it is for those who hold it"
    assert {chunk["system_fingerprint"] for chunk in chunks} == {versions[names[0]]["digest"]}
    assert swap["requests_in_flight"] >= 1
    assert newcomer == tokens(generate(engine, names[1]))
    engine.post("/v1/unload_lora_adapter", {"lora_name": names[1]})


def test_a_bad_adapter_is_refused_and_nobody_notices(engine, loaded, artifacts, versions):
    names = list(loaded)
    before = tokens(generate(engine, names[0]))
    (artifacts / "broken").mkdir(exist_ok=True)
    wrong_shape = write_adapter(artifacts / "other-rank", WEIGHTS, rank=8, config={"r": 4})
    refusals = [
        ({"lora_name": "x.v1", "lora_path": str(artifacts / "broken")}, 404),
        ({"lora_name": "x.v1", "lora_path": str(artifacts / "other-rank"), "digest": wrong_shape}, 400),
        ({"lora_name": "x.v1", "lora_path": str(artifacts / ".." / "elsewhere")}, 400),
        (versions[names[1]] | {"lora_name": names[0]}, 409),
        (versions[names[0]] | {"digest": "0" * 64}, 400),
        ({"lora_name": "x.v1"}, 400),
    ]
    for body, status in refusals:
        response = engine.post("/v1/load_lora_adapter", body)
        assert (response.status_code, set(response.json())) == (status, {"error"}), body
    assert tokens(generate(engine, names[0])) == before


def test_a_client_that_leaves_frees_its_place_and_is_counted(engine):
    aborted, tokens_before = engine.metric('requests_finished_total{reason="abort"}'), engine.metric("completion_tokens_total")
    with streaming(engine, "tiny", 2000) as stream:
        lines = stream.iter_lines()
        next(lines)
    wait_for(lambda: engine.metric('requests_finished_total{reason="abort"}') == aborted + 1)
    assert engine.metric("requests_running") == 0
    assert engine.metric("kv_blocks_used") == 0
    assert tokens_before < engine.metric("completion_tokens_total") < tokens_before + 2000


def test_sigterm_lets_a_running_answer_end(artifacts):
    with engine_process(artifacts, *QUICK, ROOTSTOCK_POOL_TOKEN="secret") as engine:
        assert engine.get("/v1/models").status_code == 401
        body = {"model": "tiny", "token_ids": PROMPT, "sampling_params": {"max_tokens": 300, "ignore_eos": True}}
        with concurrent.futures.ThreadPoolExecutor() as pool:
            headers = {"Authorization": "Bearer secret"}
            answer = pool.submit(lambda: engine.post("/inference/v1/generate", body, headers=headers))
            wait_for(lambda: b"requests_running 1.0" in engine.get("/metrics", headers=headers).content)
            assert engine.terminate() == 0
            assert answer.result().json()["usage"]["completion_tokens"] == 300


def test_an_unknown_model_is_named(tmp_path):
    command = [sys.executable, "-m", "trainer.inference", "--model", "absent", "--artifacts", str(tmp_path), "--port", "1"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert "absent" in ended.stderr
    assert "tiny" in ended.stderr
