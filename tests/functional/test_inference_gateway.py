"""The gateway over real HTTP on both sides: a real uvicorn in front, an engine that speaks the contract behind.

Promises: own models only, one pair of usage events a request whatever happens to it, the right weights or no answer, OpenAI's
shapes.
"""

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import httpx
import openai
import pytest

from controlplane.billing import queries as billing
from controlplane.billing.models import MeterEvent
from controlplane.core.tenancy import acting_for
from controlplane.inference import admission
from controlplane.inference.models import InferenceRequest, RequestStatus
from tests.factories.adapters import make_deployed
from tests.factories.fake_engine import BASE_DIGEST, running_engine
from tests.factories.runs import MODEL, fund, make_funded_member, make_pool
from tests.factories.teams import Member, make_member
from trainer.contracts.events import Meter

pytestmark = pytest.mark.django_db(transaction=True)
SOON_S = 30.0


@pytest.fixture
def engine(broker):
    with running_engine(MODEL) as engine:
        make_pool(pool_url=engine.url, inference_urls=[engine.url])
        yield engine


@pytest.fixture
def member(engine) -> Member:
    return make_funded_member()


@pytest.fixture
def gateway(live_origin) -> str:
    return f"{live_origin}/api/inference/v1"


def auth(member: Member) -> dict[str, str]:
    return {"Authorization": f"Bearer {member.key}"}


def chat(gateway: str, member: Member | None, model: str = MODEL, **fields: object) -> httpx.Response:
    body = {"model": model, "messages": [{"role": "user", "content": "3+4?"}]} | fields
    headers = auth(member) if member else {}
    return httpx.post(f"{gateway}/chat/completions", json=body, headers=headers, timeout=SOON_S)


def soon(look: Callable[[], object]) -> None:
    """Waits for what happens behind the caller's back. Fails after SOON_S."""
    deadline = time.monotonic() + SOON_S
    while not look():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def requests_of(member: Member) -> list[InferenceRequest]:
    with acting_for(member.team_id):
        return list(InferenceRequest.objects.order_by("created_at"))


def metered(member: Member) -> list[tuple[str, str, int]]:
    """(sequence, meter, quantity) of every event of the team."""
    with acting_for(member.team_id):
        return sorted(MeterEvent.objects.values_list("sequence", "meter", "quantity"))


def pair(request: InferenceRequest) -> list[tuple[str, str, int]]:
    return [
        (request.id, Meter.INFERENCE_INPUT_TOKENS.value, request.input_tokens_count),
        (request.id, Meter.INFERENCE_OUTPUT_TOKENS.value, request.output_tokens_count),
    ]


# Answers


def test_a_whole_answer_names_the_public_model_and_the_weights(gateway, member, engine):
    adapter = make_deployed(member, engine)
    answer = chat(gateway, member, adapter.served_name)
    body = answer.json()
    assert answer.status_code == 200 and answer.headers["x-adapter-digest"] == adapter.digest
    assert body["model"] == adapter.served_name and body["system_fingerprint"] == adapter.digest
    assert body["adapter"] == {"name": adapter.engine_name, "digest": adapter.digest}
    assert body["choices"][0]["message"]["content"] == "w0 w1 w2 w3 w4 "
    assert body["usage"] == {"prompt_tokens": 4, "completion_tokens": 5, "total_tokens": 9}


def test_the_engine_gets_its_own_name_the_teams_salt_and_nothing_else_of_ours(gateway, member, engine):
    adapter = make_deployed(member, engine)
    with acting_for(member.team_id):
        name = adapter.display_name
    chat(gateway, member, name, max_completion_tokens=3, user="somebody", temperature=0.5)
    (sent,) = engine.bodies("/v1/chat/completions")
    assert sent == {
        "model": adapter.engine_name,
        "messages": [{"role": "user", "content": "3+4?"}],
        "cache_salt": member.team_id,
        "max_tokens": 3,
        "temperature": 0.5,
        "stream": False,
    }
    assert engine.requests[-1][2] == "Bearer a-pool-token-for-tests"


def test_a_stream_passes_through_in_openais_shape(gateway, member, engine):
    adapter = make_deployed(member, engine)
    answer = chat(gateway, member, adapter.served_name, stream=True)
    events = [line.removeprefix("data: ") for line in answer.text.splitlines() if line]
    chunks = [json.loads(event) for event in events[:-1]]
    assert answer.headers["content-type"] == "text/event-stream" and answer.headers["x-adapter-digest"] == adapter.digest
    assert events[-1] == "[DONE]" and all(chunk["choices"] and "usage" not in chunk for chunk in chunks)
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in chunks) == "w0 w1 w2 w3 w4 "
    assert {chunk["model"] for chunk in chunks} == {adapter.served_name}
    assert not any("prompt_token_ids" in chunk or "token_ids" in chunk["choices"][0] for chunk in chunks)


def test_the_official_sdk_works_streamed_and_not(gateway, member, engine):
    adapter = make_deployed(member, engine)
    with openai.OpenAI(base_url=gateway, api_key=member.key, max_retries=0) as client:
        asked = {"model": adapter.served_name, "messages": [{"role": "user", "content": "hi"}]}
        whole = client.chat.completions.create(**asked)
        stream = client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True})
        chunks = list(stream)
        assert whole.choices[0].message.content == "w0 w1 w2 w3 w4 " and whole.system_fingerprint == adapter.digest
        assert chunks[-1].usage.completion_tokens == 5 and chunks[-1].choices == []
        assert [model.id for model in client.models.list()] == [MODEL, adapter.served_name]
        with pytest.raises(openai.NotFoundError) as refusal:
            client.chat.completions.create(model="nobody", messages=asked["messages"])
        assert refusal.value.code == "model_not_found" and "nobody" in refusal.value.message


# Bills


def test_each_request_leaves_one_record_and_one_pair_of_events(gateway, member, engine):
    adapter = make_deployed(member, engine)
    for stream in (False, True):
        assert chat(gateway, member, adapter.served_name, stream=stream).status_code == 200
    rows = requests_of(member)
    assert [(row.status, row.is_stream, row.input_tokens_count, row.output_tokens_count) for row in rows] == [
        (RequestStatus.OK, False, 4, 5),
        (RequestStatus.OK, True, 4, 5),
    ]
    assert metered(member) == sorted(pair(rows[0]) + pair(rows[1]))
    assert rows[0].adapter_digest == adapter.digest and rows[0].ttft_s is None and rows[1].ttft_s > 0


def test_the_bill_can_be_recomputed_from_the_records(gateway, member, client_of):
    for _ in range(3):
        chat(gateway, member)
    client = client_of(member)
    records = client.get("/api/v1/inference/requests").json()["items"]
    lines = client.get("/api/v1/billing/usage").json()["items"]
    spent_in, spent_out = sorted(lines, key=lambda line: line["meter"])
    assert {spent_in["subject_id"], spent_out["subject_id"]} == {MODEL}
    assert spent_in["quantity"] == sum(record["input_tokens_count"] for record in records) == 12
    assert spent_out["quantity"] == sum(record["output_tokens_count"] for record in records) == 15


def test_an_aborted_stream_is_billed_for_what_was_streamed_and_aborts_the_engine(gateway, member, engine):
    engine.tokens_count, engine.hold_after = 1_000, 3
    body = {"model": MODEL, "messages": [{"role": "user", "content": "3+4?"}], "stream": True}
    with httpx.stream("POST", f"{gateway}/chat/completions", json=body, headers=auth(member), timeout=SOON_S) as answer:
        lines = answer.iter_lines()
        while "w2" not in next(lines):
            pass
    soon(lambda: requests_of(member))
    engine.go.set()
    (row,) = requests_of(member)
    assert (row.status, row.input_tokens_count, row.output_tokens_count) == (RequestStatus.ABORTED, 4, 3)
    assert metered(member) == pair(row)
    assert engine.aborted.wait(SOON_S)


def test_a_whole_answer_is_finished_and_billed_although_its_caller_has_gone(gateway, member, engine):
    engine.hold_after = 0
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(
            f"{gateway}/chat/completions",
            json={"model": MODEL, "messages": [{"role": "user", "content": "3+4?"}]},
            headers=auth(member),
            timeout=0.5,
        )
    assert engine.holding.wait(SOON_S)
    engine.go.set()
    soon(lambda: requests_of(member))
    (row,) = requests_of(member)
    assert row.status == RequestStatus.OK and metered(member) == pair(row)


def test_an_empty_wallet_is_refused_before_the_engine_hears_of_it(gateway, engine):
    poor = make_member()
    answer = chat(gateway, poor)
    assert answer.status_code == 402 and answer.json()["error"]["code"] == "insufficient_funds"
    assert engine.requests == [] and requests_of(poor) == []


def test_concurrent_requests_are_each_billed_once(gateway, member):
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda n: chat(gateway, member, stream=n % 2 == 0).status_code, range(24)))
    assert answers == [200] * 24
    rows = requests_of(member)
    assert metered(member) == sorted(entry for row in rows for entry in pair(row)) and len(rows) == 24
    with acting_for(member.team_id):
        assert billing.ledger_totals().sum_microusd == 0


# Whose models


def test_another_teams_adapter_is_the_same_404_as_none(gateway, member, engine):
    adapter = make_deployed(member, engine)
    stranger = make_funded_member()
    foreign = chat(gateway, stranger, adapter.served_name)
    absent_name = f"{MODEL}:c{'0' * 24}"
    absent = chat(gateway, stranger, absent_name)
    assert foreign.status_code == absent.status_code == 404
    assert foreign.text.replace(adapter.served_name, "X") == absent.text.replace(absent_name, "X")
    assert engine.bodies("/v1/chat/completions") == []


def test_an_adapter_that_is_not_deployed_is_not_served(gateway, member, engine, client_of):
    adapter = make_deployed(member, engine)
    client_of(member).post(f"/api/v1/rft/adapters/{adapter.id}/unload")
    answer = chat(gateway, member, adapter.served_name)
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "model_not_deployed")


def test_the_team_of_the_header_decides_whose_models_and_whose_money(gateway, member, engine):
    answer = httpx.post(
        f"{gateway}/chat/completions",
        json={"model": MODEL, "messages": [{"role": "user", "content": "x"}]},
        headers=auth(member) | {"X-Prime-Team-ID": make_member().team_id},
    )
    assert answer.status_code == 404


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer rsk_wrong"}])
def test_without_a_good_key_nothing_is_answered(gateway, engine, headers):
    answer = httpx.post(f"{gateway}/chat/completions", json={}, headers=headers)
    assert answer.status_code == 401 and answer.json()["error"]["type"] == "authentication_error"


def test_models_without_a_key_are_the_bases_with_their_prices(gateway, member, engine):
    adapter = make_deployed(member, engine)
    chat(gateway, member)
    (row,) = httpx.get(f"{gateway}/models").json()["data"]
    assert row["id"] == MODEL and row["pricing"]["output_usd_per_mtok"] > 0 and row["specs"]["context_window"] > 0
    assert httpx.get(f"{gateway}/models/{adapter.served_name}").status_code == 404
    mine = httpx.get(f"{gateway}/models/{adapter.served_name}", headers=auth(member)).json()
    assert mine["parent"] == MODEL and mine["adapter_digest"] == adapter.digest


# What can go wrong


def test_a_bad_request_is_refused_by_name(gateway, member, engine):
    for fields, param in [
        ({"temperature": 9}, "temperature"),
        ({"messages": []}, "messages"),
        ({"cache_salt": "theirs"}, "cache_salt"),
        ({"n": 2}, "n"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"model": "tiny:\0"}, "model"),
    ]:
        answer = chat(gateway, member, **fields)
        assert answer.status_code == 422 and answer.json()["error"]["param"] == param
    broken = httpx.post(f"{gateway}/chat/completions", content=b"{", headers=auth(member))
    assert (broken.status_code, broken.json()["error"]["code"]) == (400, "invalid_json")
    endless = httpx.post(f"{gateway}/chat/completions", content=b"[" * 100_000, headers=auth(member))
    assert (endless.status_code, endless.json()["error"]["code"]) == (400, "invalid_json")
    half = httpx.post(f"{gateway}/chat/completions", content=rb'{"messages": [{"content": "\ud800"}]}', headers=auth(member))
    assert (half.status_code, half.json()["error"]["param"]) == (422, "messages.0.content")
    assert engine.requests == []


def test_what_the_engine_refuses_is_told_under_the_callers_name(gateway, member, engine):
    adapter = make_deployed(member, engine)
    told = {
        "message": f"{adapter.engine_name}: the prompt is too long",
        "type": "x",
        "code": "context_length_exceeded",
        "param": None,
    }
    engine.refusal = (400, {"error": told})
    for stream in (False, True):
        answer = chat(gateway, member, adapter.served_name, stream=stream)
        assert answer.status_code == 400
        error = answer.json()["error"]
        assert error["code"] == "context_length_exceeded" and adapter.served_name in error["message"]
        assert adapter.engine_name not in answer.text
    assert metered(member) == [] and [row.status for row in requests_of(member)] == [RequestStatus.FAILED] * 2


def test_an_engine_that_lost_the_adapter_loads_it_and_the_request_succeeds(gateway, member, engine):
    adapter = make_deployed(member, engine)
    for stream in (False, True):
        engine.restart()
        answer = chat(gateway, member, adapter.served_name, stream=stream)
        assert answer.status_code == 200 and engine.loaded[adapter.engine_name] == adapter.digest
    assert len(engine.bodies("/v1/load_lora_adapter")) == 2 and len(metered(member)) == 4


def test_an_engine_that_is_down_is_a_503_with_a_hint_when_to_retry(gateway, member):
    make_pool(pool_url="http://127.0.0.1:9", inference_urls=["http://127.0.0.1:9"])
    for stream in (False, True):
        answer = chat(gateway, member, stream=stream)
        assert answer.status_code == 503 and answer.headers["retry-after"]
        assert answer.json()["error"]["code"] == "engine_unavailable"
    assert metered(member) == []


def test_an_engine_that_dies_while_answering_ends_the_stream_with_an_error_and_no_bill(gateway, member, engine):
    engine.break_after = 2
    answer = chat(gateway, member, stream=True)
    events = [line.removeprefix("data: ") for line in answer.text.splitlines() if line]
    assert json.loads(events[-2])["error"]["code"] == "engine_unavailable" and events[-1] == "[DONE]"
    (row,) = requests_of(member)
    assert (row.status, row.output_tokens_count) == (RequestStatus.FAILED, 2) and metered(member) == []


def test_other_weights_than_asked_for_are_never_passed_on(gateway, member, engine):
    adapter = make_deployed(member, engine)
    engine.claimed_digest = BASE_DIGEST
    for stream in (False, True):
        answer = chat(gateway, member, adapter.served_name, stream=stream)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "adapter_mismatch")
    assert metered(member) == []


def test_a_team_at_its_limit_waits_and_others_do_not(gateway, member, engine, monkeypatch):
    monkeypatch.setattr(admission, "TEAM_CONCURRENCY_MAX", 1)
    other = make_member()
    fund(other)
    engine.hold_after = 0
    with ThreadPoolExecutor(1) as thread:
        held = thread.submit(chat, gateway, member, stream=True)
        assert engine.holding.wait(SOON_S)
        engine.hold_after = None
        refused = chat(gateway, member)
        assert (refused.status_code, refused.json()["error"]["type"]) == (429, "rate_limit_error") and refused.headers[
            "retry-after"
        ]
        assert chat(gateway, other).status_code == 200
        engine.go.set()
        assert held.result().status_code == 200
    assert chat(gateway, member).status_code == 200
