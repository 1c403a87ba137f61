"""The model endpoint of a sandbox, over real HTTP: what it lets through, what it records, and how it tells failures apart."""

import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx

from tests.fixtures.orchestrator_world import BASE_DIGEST, Engine, serve
from trainer.contracts.rollouts import SEAT_HEADER
from trainer.orchestrator.engines.gate import EngineGate
from trainer.orchestrator.engines.policies import Policy, PolicyTable
from trainer.orchestrator.proxy.artifacts import RolloutArtifacts
from trainer.orchestrator.proxy.model_requests import Pins, SeatPins
from trainer.orchestrator.proxy.server import RolloutProxy
from trainer.orchestrator.proxy.sessions import SessionBook
from trainer.orchestrator.transport.link import Link

HEADERS = {"X-Session-ID": "trace-1"}
GENERATE = {"model": "tiny", "token_ids": [1, 2, 3], "cache_salt": "theirs", "sampling_params": {"max_tokens": 9}}
CHAT = {"model": "tiny", "messages": [{"role": "user", "content": "?"}]}


@dataclass
class Bench:
    engine: Engine
    sessions: SessionBook
    http: httpx.AsyncClient
    troubles: list[tuple[str, str]]

    def calls(self, session: str = "trace-1"):
        found = self.sessions.take("digits", session)
        return found.calls if found else []


@contextlib.asynccontextmanager
async def bench(
    *, patience_s: float = 5.0, seats: Mapping[str, SeatPins] | None = None, folder: Path | None = None
) -> AsyncIterator[Bench]:
    engine, sessions, policies = Engine(), SessionBook(), PolicyTable()
    policies.publish(Policy("tiny", BASE_DIGEST))
    troubles: list[tuple[str, str]] = []
    async with serve(engine.app) as engine_url:
        link = Link.to_url(engine_url, {"Authorization": "Bearer pool"})
        gate = EngineGate(link, None, lambda *trouble: troubles.append(trouble), patience_s=patience_s)
        pins = Pins("team", 1.0, 64, 2048, pictures=folder is not None)
        artifacts = RolloutArtifacts(folder) if folder else None
        proxy = RolloutProxy(
            "digits", policies=policies, gate=gate, sessions=sessions, pins=pins, seats=seats, artifacts=artifacts
        )
        async with serve(proxy.app) as url, httpx.AsyncClient(base_url=url, headers=HEADERS, verify=False) as http:
            yield Bench(engine, sessions, http, troubles)
        link.close()


async def test_a_generate_call_is_pinned_recorded_and_spelled():
    async with bench() as b:
        reply = (await b.http.post("/inference/v1/generate", json=GENERATE)).json()
        (call,) = b.calls()
    assert b.engine.salts == {"team"}
    assert [entry["token"] for entry in reply["choices"][0]["logprobs"]["content"]] == ["token_id:49", "token_id:258"]
    assert (call.prompt_ids, call.token_ids, call.logprobs) == ((1, 2, 3), (49, 258), (-0.5, -0.51))
    assert (call.engine_name, call.adapter_digest, call.input_tokens, call.output_tokens) == ("tiny", BASE_DIGEST, 3, 2)


async def test_chat_calls_are_recorded_streamed_or_not():
    async with bench() as b:
        plain = await b.http.post("/v1/chat/completions", json=CHAT)
        streamed = await b.http.post("/v1/chat/completions", json=CHAT | {"stream": True})
        calls = b.calls()
    assert plain.json()["choices"][0]["message"]["content"] == "1"
    assert streamed.text.endswith("data: [DONE]\n\n") and streamed.headers["content-type"].startswith("text/event-stream")
    assert [(call.route, call.input_tokens, call.output_tokens) for call in calls] == [("chat", 7, 2)] * 2


async def test_only_policies_in_use_are_served_and_listed():
    async with bench() as b:
        refused = await b.http.post("/inference/v1/generate", json=GENERATE | {"model": "somebody.v3"})
        listed = (await b.http.get("/v1/models")).json()["data"]
    assert refused.status_code == 404
    assert "somebody.v3" in refused.json()["error"]["message"]
    assert [(card["id"], card["max_model_len"]) for card in listed] == [("tiny", 2048)]
    assert b.engine.calls == 0


async def test_bad_requests_are_the_callers_and_leave_no_record():
    async with bench() as b:
        no_session = await b.http.post("/inference/v1/generate", json=GENERATE, headers={"X-Session-ID": ""})
        no_tokens = await b.http.post("/inference/v1/generate", json=GENERATE | {"token_ids": []})
        nonsense = await b.http.post("/v1/chat/completions", content=b"{")
        many = await b.http.post("/v1/chat/completions", json=CHAT | {"n": 3})
        assert [reply.status_code for reply in (no_session, no_tokens, nonsense, many)] == [400, 400, 400, 400]
        assert b.sessions.unclaimed(float("inf")) == {}


async def test_other_weights_are_an_infrastructure_failure():
    async with bench() as b:
        b.engine.lies_left = 1
        reply = await b.http.post("/inference/v1/generate", json=GENERATE)
        session = b.sessions.take("digits", "trace-1")
    assert reply.status_code == 502
    assert session is not None and session.infrastructure and not session.calls


async def test_an_engine_that_is_away_for_a_moment_is_waited_for_and_told_once():
    async with bench() as b:
        b.engine.down = True

        async def recover():
            b.engine.down = b.engine.calls == 0 and not b.troubles

        b.engine.delay = recover
        reply = await b.http.post("/inference/v1/generate", json=GENERATE)
        assert reply.status_code == 200 and len(b.calls()) == 1
    assert [code for code, _ in b.troubles] == ["inference_unreachable", "inference_unreachable_over"]


async def test_an_engine_that_stays_away_is_an_infrastructure_failure():
    async with bench(patience_s=0.0) as b:
        b.engine.down = True
        reply = await b.http.post("/inference/v1/generate", json=GENERATE)
        session = b.sessions.take("digits", "trace-1")
    assert (reply.status_code, reply.json()["error"]["code"]) == (503, "infrastructure")
    assert session is not None and session.infrastructure


async def test_an_agent_with_a_model_of_its_own_samples_by_its_own_pins_and_is_recorded_by_name():
    caller = SeatPins("tiny", Pins("team", 0.3, 5, 2048))
    async with bench(seats={"user": caller}) as b:
        spoke = await b.http.post("/v1/chat/completions", json=CHAT, headers=HEADERS | {SEAT_HEADER: "user"})
        other = await b.http.post(
            "/v1/chat/completions", json=CHAT | {"model": "run.v3"}, headers=HEADERS | {SEAT_HEADER: "user"}
        )
        policy = await b.http.post("/v1/chat/completions", json=CHAT)
        calls = b.calls()
    assert (spoke.status_code, other.status_code, policy.status_code) == (200, 400, 200)
    assert "the agent user is played by tiny" in other.json()["error"]["message"]
    assert [(call.seat, call.temperature) for call in calls] == [("user", 0.3), ("", 1.0)]


async def test_pictures_and_routing_data_stay_behind_as_files_and_the_record_has_their_digests(tmp_path):
    picture = {"type": "image_url", "url": "data:image/png;base64,AAEC"}
    async with bench(folder=tmp_path) as b:
        b.engine.extras = {"routed_experts": {"data": "AQI=", "shape": [1, 1, 2], "start": 0}}
        reply = await b.http.post("/inference/v1/generate", json=GENERATE | {"content_parts": [picture]})
        elsewhere = {"type": "image_url", "url": "https://somewhere/x.png"}
        refused = await b.http.post("/inference/v1/generate", json=GENERATE | {"content_parts": [elsewhere]})
        (call,) = b.calls()
    assert "routed_experts" not in reply.json()["choices"][0]
    artifacts = RolloutArtifacts(tmp_path)
    assert artifacts.read(call.routed_experts).endswith(b"\n\x01\x02")
    assert b"image/png" in artifacts.read(call.multimodal)
    assert (refused.status_code, b.engine.calls, len(list(tmp_path.iterdir()))) == (400, 1, 3)
    assert "content_parts: a picture must be a data: URL in base64" in refused.json()["error"]["message"]
