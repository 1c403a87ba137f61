"""The gateway in front of our own engine: a reported version is deployed, called, billed, and survives the engine's restart."""

import json

import httpx
import openai
import pytest

from controlplane.adapters import services
from controlplane.adapters.models import Adapter
from controlplane.core.tenancy import acting_as_system, acting_for
from controlplane.inference.models import InferenceRequest, RequestStatus
from tests.factories.adapters import report_of
from tests.factories.engine_process import EngineProcess, engine_process, wait_for
from tests.factories.runs import MODEL, fresh, make_funded_member, make_pool, make_run
from tests.factories.teams import Member
from tests.factories.tiny_llama import write_adapter
from trainer.contracts.catalogue import model_folder
from workers import deployments

pytestmark = pytest.mark.django_db(transaction=True)
WEIGHTS = model_folder("tiny/weights")
TOKEN = "a-pool-token-for-tests"
QUESTION = [{"role": "user", "content": "3+4?"}]
PROMPT_TOKENS = 23
"""The question under the tiny model's chat template."""


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    with engine_process(tmp_path_factory.mktemp("artifacts"), ROOTSTOCK_POOL_TOKEN=TOKEN) as engine:
        yield engine


@pytest.fixture
def member(engine: EngineProcess, broker) -> Member:
    make_pool(pool_url=engine.url, inference_urls=[engine.url], artifact_root=str(engine.artifacts))
    return make_funded_member()


@pytest.fixture
def adapter(member: Member, engine: EngineProcess) -> Adapter:
    """A version on disk, reported, deployed and settled by the reconciler."""
    report = report_of(run := make_run(member), 1)
    digest = write_adapter(engine.artifacts / report.path, WEIGHTS)
    with acting_as_system():
        row = services.record_version(run, report.model_copy(update={"adapter_digest": digest}))
        with acting_for(member.team_id):
            services.deploy_adapter(member.actor, row.pk)
        deployments.reconcile(row.pk)
    return fresh(row)


def client_of(origin: str, member: Member) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{origin}/api/inference/v1", api_key=member.key, max_retries=0)


def records(member: Member) -> list[InferenceRequest]:
    with acting_for(member.team_id):
        return list(InferenceRequest.objects.order_by("created_at"))


def test_the_digest_that_answers_is_the_one_that_was_deployed(live_origin, member, adapter):
    assert adapter.deployment_status == "DEPLOYED" and adapter.deployed_digest == adapter.digest
    with client_of(live_origin, member) as client:
        raw = client.chat.completions.with_raw_response.create(
            model=adapter.served_name, messages=QUESTION, max_tokens=6, temperature=0
        )
        whole = raw.parse()
        chunks = list(
            client.chat.completions.create(
                model=adapter.served_name, messages=QUESTION, max_tokens=6, temperature=0, stream=True, logprobs=True
            )
        )
        base = client.chat.completions.create(model=MODEL, messages=QUESTION, max_tokens=6, temperature=0)
    streamed = "".join(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert raw.headers["x-adapter-digest"] == whole.system_fingerprint == chunks[0].system_fingerprint == adapter.digest
    assert streamed == whole.choices[0].message.content != base.choices[0].message.content
    assert [row.input_tokens_count for row in records(member)] == [whole.usage.prompt_tokens] * 3


def test_an_aborted_stream_counts_as_many_tokens_as_the_caller_saw(live_origin, member):
    body = {"model": MODEL, "messages": QUESTION, "stream": True, "max_tokens": 1_500, "logprobs": True, "temperature": 5}
    headers = {"Authorization": f"Bearer {member.key}"}
    seen = 0
    with httpx.stream(
        "POST", f"{live_origin}/api/inference/v1/chat/completions", json=body, headers=headers, timeout=60
    ) as answer:
        for line in answer.iter_lines():
            if line.startswith("data: {"):
                seen += len((json.loads(line[6:])["choices"][0].get("logprobs") or {}).get("content") or [])
            if seen >= 3:
                break
    wait_for(lambda: records(member), deadline_s=60)
    (row,) = records(member)
    assert row.status == RequestStatus.ABORTED or row.output_tokens_count < 1_500  # A hot model may end by itself meanwhile.
    assert row.input_tokens_count == PROMPT_TOKENS and row.output_tokens_count >= seen >= 3


def test_what_the_engine_does_not_support_is_refused_by_name(live_origin, member):
    with client_of(live_origin, member) as client, pytest.raises(openai.BadRequestError) as refusal:
        client.chat.completions.create(model=MODEL, messages=QUESTION, presence_penalty=1)
    assert refusal.value.param == "presence_penalty"


def test_an_adapter_that_the_engine_dropped_is_loaded_by_the_request(live_origin, member, adapter, engine):
    dropped = engine.post(
        "/v1/unload_lora_adapter", {"lora_name": adapter.engine_name}, headers={"Authorization": f"Bearer {TOKEN}"}
    )
    assert dropped.status_code == 200
    with client_of(live_origin, member) as client:
        answer = client.chat.completions.create(model=adapter.served_name, messages=QUESTION, max_tokens=2)
    assert answer.system_fingerprint == adapter.digest
