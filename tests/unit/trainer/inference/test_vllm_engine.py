"""vLLM as a backend: what is asked of it, what becomes of its answers, restarts, failures and adapters that come and go."""

import asyncio
import time
from pathlib import Path

import pytest

from tests.factories.engines import reader_of, small_limits
from tests.factories.fake_vllm import LOGPROB, FakeVllm
from tests.factories.tiny_llama import write_adapter
from trainer.contracts.generation import AdapterIdentity, SamplingParams
from trainer.inference.errors import BadRequest, EngineStopped, InvalidAdapter, Saturated
from trainer.inference.metrics import EngineMetrics
from trainer.inference.sequence import FinishReason, Sequence
from trainer.inference.vllm import engine as vllm_engine
from trainer.inference.vllm.adapters import AdapterFolder, FolderReader, LoadedAdapters
from trainer.inference.vllm.engine import VllmEngine
from trainer.orchestrator.engines.concurrency import EngineLoad, load_of

BASE = AdapterIdentity(name="random", digest="0" * 64)
ZERO = AdapterFolder("zero", 8, Path("/zero"))


def folder(digest: str) -> AdapterFolder:
    return AdapterFolder(digest, 8, Path("/adapters") / digest)


def sequence(adapter: AdapterFolder | None = None, *, deadline_s: float = 60, **fields) -> Sequence:
    sampling = fields.pop("sampling", SamplingParams(temperature=0.5, seed=7))
    defaults = {"id": "s", "prompt": [1, 2, 3], "identity": BASE, "max_new": 4, "deadline_at_s": time.monotonic() + deadline_s}
    return Sequence(adapter=adapter, sampling=sampling, **(defaults | fields))


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(vllm_engine, "RETRY_S", 0.0)


@pytest.fixture
def vllm():
    return FakeVllm()


@pytest.fixture
async def make_engine(vllm):
    made = []

    def make(*, base_adapter=None, names_max=8, metrics=None, **limits):
        upstream = vllm.upstream()
        adapters = LoadedAdapters(upstream, names_max=names_max)
        made.append(
            VllmEngine(
                upstream, adapters, small_limits(**limits), metrics or EngineMetrics(), base=BASE, base_adapter=base_adapter
            )
        )
        return made[-1]

    yield make
    for engine in made:
        await engine.stop()


@pytest.mark.parametrize("streams", [False, True])
async def test_tokens_and_logprobs_arrive_in_order(make_engine, vllm, streams):
    done = await make_engine().submit(sequence(streams=streams)).finished()
    assert (done.token_ids, done.logprobs, done.finish_reason) == ([4, 5, 6, 7], [LOGPROB] * 4, FinishReason.LENGTH)
    asked = vllm.requests[0]
    assert (asked["model"], asked["token_ids"], asked["stream"]) == ("random", [1, 2, 3], streams)
    assert asked["sampling_params"] | {"temperature": 0.5, "seed": 7, "max_tokens": 4} == asked["sampling_params"]


def busy(*waiting: int, kv_share: float, blocks: str = "200") -> str:
    """The server's own words, one engine each."""
    lines = [f'vllm:num_requests_waiting{{engine="{number}",model_name="m"}} {count}.0' for number, count in enumerate(waiting)]
    lines += [f'vllm:cache_config_info{{block_size="16",engine="0",num_gpu_blocks="{blocks}"}} 1.0']
    return "\n".join([*lines, f'vllm:kv_cache_usage_perc{{engine="0",model_name="m"}} {kv_share}', ""])


async def test_the_servers_queue_and_cache_are_told_under_our_own_names(vllm, make_engine):
    """What runs follow (`trainer.orchestrator.engines.concurrency`) is the queue, wherever it stands."""
    metrics = EngineMetrics()
    engine = make_engine(metrics=metrics, sequences_max=64)
    vllm.gate.clear()
    tickets = [engine.submit(sequence(max_new=1)) for _ in range(5)]
    while len(vllm.requests) < 5:
        await asyncio.sleep(0)
    await engine.look()
    assert load_of([metrics.text().decode()]) == EngineLoad(5, 0, 0.0), "a server that says nothing has no queue"
    vllm.metrics = busy(1, 2, kv_share=0.25)
    await engine.look()
    assert load_of([metrics.text().decode()]) == EngineLoad(2, 3, 0.25)
    vllm.metrics = busy(9, kv_share=0.5, blocks="None")
    await engine.look()
    assert load_of([metrics.text().decode()]) == EngineLoad(0, 5, 0.25), "never more than there are"
    vllm.metrics = None
    vllm.gate.set()
    await asyncio.gather(*(ticket.finished() for ticket in tickets))
    await engine.look()
    assert load_of([metrics.text().decode()]) == EngineLoad(0, 0, 0.25)


async def test_a_server_that_serves_is_asked_again_and_again(monkeypatch, vllm, make_engine):
    monkeypatch.setattr(vllm_engine, "LOOK_S", 0.0)
    metrics = EngineMetrics()
    engine = make_engine(metrics=metrics)
    await engine.start()
    vllm.metrics = busy(0, kv_share=0.5)
    async with asyncio.timeout(5):
        while load_of([metrics.text().decode()]).kv_share != 0.5:
            await asyncio.sleep(0)
    assert load_of([metrics.text().decode()]).kv_share == 0.5


async def test_end_tokens_end_a_sequence_and_are_part_of_it(make_engine, vllm):
    done = await make_engine().submit(sequence(stop_ids=frozenset({9, 5}))).finished()
    assert (done.token_ids, done.finish_reason) == ([4, 5], FinishReason.STOP)
    assert vllm.requests[0]["sampling_params"]["ignore_eos"], "what ends a sequence is spelled out, not read from vLLM's files"


async def test_a_cache_is_never_shared_between_teams(make_engine, vllm):
    await make_engine().submit(sequence(cache_salt="team-salt")).finished()
    assert vllm.requests[0]["cache_salt"] == "team-salt"


async def test_a_prompt_is_scored(make_engine):
    done = await make_engine().submit(sequence(prompt_top_logprobs=1, sampling=SamplingParams())).finished()
    assert (done.prompt_logprobs, done.prompt_tops) == ([LOGPROB] * 2, [[(2, LOGPROB)], [(3, LOGPROB)]])


async def test_scoring_looks_each_prompt_token_up_by_its_id_and_keeps_no_sampled_one(make_engine, vllm):
    """vLLM answers the most likely tokens beside the prompt's own, in any order."""
    vllm.prompt_scores = {2: -3.0, 3: -4.0}
    scored = sequence(folder("d1"), prompt_top_logprobs=0, max_new=0, sampling=SamplingParams())
    done = await make_engine().submit(scored).finished()
    assert (done.prompt_logprobs, done.token_ids, done.finish_reason) == ([-3.0, -4.0], [], FinishReason.LENGTH)
    asked = vllm.requests[0]["sampling_params"]
    assert (vllm.requests[0]["model"], asked["max_tokens"], asked["prompt_logprobs"]) == ("d1", 1, 0)


async def test_a_score_that_is_no_number_is_told_as_such(make_engine, vllm):
    vllm.prompt_scores = {2: -9999.0}
    scored = sequence(prompt_top_logprobs=0, max_new=0, sampling=SamplingParams())
    assert (await make_engine().submit(scored).finished()).finish_reason is FinishReason.NON_FINITE


async def test_a_temperature_that_vllm_would_leave_out_of_a_prompts_scores_is_refused(make_engine):
    with pytest.raises(BadRequest, match="temperature 1") as refused:
        make_engine().submit(sequence(prompt_top_logprobs=0, max_new=0, sampling=SamplingParams(temperature=0.5)))
    assert refused.value.param == "temperature"


async def test_base_requests_go_through_the_zero_adapter_where_there_is_one(make_engine, vllm):
    engine = make_engine(base_adapter=ZERO)
    await engine.start()
    await engine.submit(sequence()).finished()
    assert {request["model"] for request in vllm.requests} == {"zero"}


async def test_an_adapter_is_loaded_once_under_its_digest(make_engine, vllm):
    engine = make_engine()
    tickets = [engine.submit(sequence(folder("d1"))) for _ in range(5)]
    await asyncio.gather(*(ticket.finished() for ticket in tickets))
    assert vllm.loads == ["d1"]
    assert {request["model"] for request in vllm.requests} == {"d1"}


async def test_a_restarted_server_is_told_its_adapters_again_and_nobody_notices(make_engine, vllm):
    engine = make_engine(base_adapter=ZERO)
    await engine.submit(sequence(folder("d1"))).finished()
    vllm.restart()
    done = await engine.submit(sequence(folder("d1"))).finished()
    base = await engine.submit(sequence()).finished()
    assert (done.finish_reason, base.finish_reason) == (FinishReason.LENGTH, FinishReason.LENGTH)
    assert vllm.loads.count("d1") == 2


async def test_names_are_bounded_and_those_in_use_stay(make_engine, vllm):
    engine = make_engine(names_max=2)
    vllm.gate.clear()
    held = engine.submit(sequence(folder("held")))
    while not vllm.requests:
        await asyncio.sleep(0)
    vllm_names = []
    for digest in ("d1", "d2", "d3"):
        ticket = engine.submit(sequence(folder(digest)))
        while digest not in vllm.loaded:
            await asyncio.sleep(0)
        engine.abort(ticket.sequence)
        await ticket.finished()
        vllm_names.append(set(vllm.loaded))
    vllm.gate.set()
    assert (await held.finished()).finish_reason is FinishReason.LENGTH
    assert all("held" in names and len(names) <= 2 for names in vllm_names), vllm_names


async def test_a_server_that_fails_before_the_first_token_is_asked_again(make_engine, vllm):
    engine = make_engine()
    vllm.failures = [500, 503]
    assert (await engine.submit(sequence()).finished()).finish_reason is FinishReason.LENGTH
    assert len(vllm.requests) == 3


async def test_a_request_that_is_refused_ends_and_is_not_repeated(make_engine, vllm):
    engine = make_engine()
    vllm.failures = [400]
    assert (await engine.submit(sequence()).finished()).finish_reason is FinishReason.ENGINE
    assert len(vllm.requests) == 1


@pytest.mark.parametrize("logprob", [None, -9999.0])
async def test_a_number_that_is_none_ends_the_sequence(make_engine, vllm, logprob):
    engine = make_engine()
    vllm.logprob = logprob
    done = await engine.submit(sequence()).finished()
    assert (done.finish_reason, done.token_ids) == (FinishReason.NON_FINITE, [])


async def test_deadline_abort_and_stop_end_what_waits(make_engine, vllm):
    engine = make_engine()
    vllm.gate.clear()
    late = engine.submit(sequence(deadline_s=0.05))
    aborted, cut = engine.submit(sequence()), engine.submit(sequence())
    engine.abort(aborted.sequence)
    assert (await late.finished()).finish_reason is FinishReason.DEADLINE
    assert (await aborted.finished()).finish_reason is FinishReason.ABORT
    await engine.stop()
    assert (await cut.finished()).finish_reason is FinishReason.ENGINE
    with pytest.raises(EngineStopped):
        engine.submit(sequence())


async def test_a_full_queue_refuses(make_engine, vllm):
    engine = make_engine(sequences_max=1, waiting_max=1)
    vllm.gate.clear()
    engine.submit(sequence())
    engine.submit(sequence())
    with pytest.raises(Saturated):
        engine.submit(sequence())
    urgent = engine.submit(sequence(urgent=True))
    vllm.gate.set()
    assert (await urgent.finished()).finish_reason is FinishReason.LENGTH


def test_files_are_checked_before_vllm_is_told_of_them(model, tmp_path):
    reader = FolderReader(reader_of(tmp_path, model))
    digest = write_adapter(tmp_path / "v1", model, seed=1, rank=4)
    assert reader.read(tmp_path / "v1", digest=digest) == AdapterFolder(digest, 4, tmp_path / "v1")
    with pytest.raises(InvalidAdapter, match="hashes to"):
        reader.read(tmp_path / "v1", digest="0" * 64)
