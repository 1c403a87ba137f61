"""Rollouts in flight follow the engine: up to what it takes, never to nothing, and without swinging ever wider."""

import asyncio

import httpx
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.inference.metrics import EngineMetrics
from trainer.orchestrator.engines.concurrency import EngineLoad, InflightLimit, load_of
from trainer.orchestrator.engines.loads import EngineLoads

GROUP, CEILING, POLL_S = 4, 256, 2.0
FREE = EngineLoad(running=1, waiting=0, kv_share=0.1)
PRESSED = EngineLoad(running=10, waiting=9, kv_share=0.1)


def follow(limits: list[InflightLimit], capacity: int, polls: int) -> list[list[int]]:
    """Runs that use all that they may on one engine with so many places. Returns their limits at each poll."""
    seen = []
    for poll in range(polls):
        total = sum(limit.value for limit in limits)
        load = EngineLoad(min(total, capacity), max(0, total - capacity), min(1.0, total / (2 * capacity)))
        for limit in limits:
            limit.observe(load, inflight=limit.value, now_s=poll * POLL_S)
        seen.append([limit.value for limit in limits])
    return seen


@settings(max_examples=30, deadline=None)
@given(capacity=st.integers(GROUP, 512))
def test_the_limit_settles_around_what_the_engine_takes_and_stays_there(capacity):
    settled = [value for (value,) in follow([InflightLimit(floor=GROUP, ceiling=CEILING)], capacity, 300)][150:]
    reachable = min(capacity, CEILING)
    assert min(settled) >= max(GROUP, min(CEILING, 0.75 * reachable))
    assert max(settled) <= min(CEILING, max(2 * GROUP, 1.25 * reachable + 6 * GROUP))


def test_runs_that_share_an_engine_share_its_places():
    limits = [InflightLimit(floor=GROUP, ceiling=CEILING), InflightLimit(floor=GROUP, ceiling=CEILING)]
    limits[1].value = GROUP
    first, second = follow(limits, 64, 600)[-1]
    assert 0.6 < first / second < 1.7


@settings(max_examples=50, deadline=None)
@given(loads=st.lists(st.tuples(st.sampled_from([FREE, PRESSED]), st.integers(0, CEILING), st.floats(0, 30)), max_size=200))
def test_whatever_the_engine_says_the_limit_stays_between_one_group_and_the_owners_own(loads):
    limit, now_s = InflightLimit(floor=GROUP, ceiling=CEILING), 0.0
    for load, inflight, passed_s in loads:
        now_s += passed_s
        limit.observe(load, inflight=inflight, now_s=now_s)
        assert GROUP <= limit.value <= CEILING


def test_one_queue_is_answered_by_one_cut():
    limit = InflightLimit(floor=GROUP, ceiling=100)
    for now_s in (0.0, 2.0, 4.0, 6.0, 8.0):
        limit.observe(PRESSED, inflight=100, now_s=now_s)
    assert limit.value == 80
    limit.observe(PRESSED, inflight=80, now_s=10.0)
    assert limit.value == 64


def test_a_full_cache_is_pressure_too():
    assert EngineLoad(running=10, waiting=0, kv_share=0.96).is_pressed
    assert not EngineLoad(running=10, waiting=2, kv_share=0.9).is_pressed


def test_a_limit_that_is_not_used_is_not_raised():
    limit = InflightLimit(floor=GROUP, ceiling=100)
    limit.observe(PRESSED, inflight=100, now_s=0.0)
    limit.observe(FREE, inflight=10, now_s=20.0)
    assert limit.value == 80
    limit.observe(FREE, inflight=78, now_s=22.0)
    assert limit.value == 84


def test_the_numbers_of_our_engine_and_of_vllm_are_both_read():
    metrics = EngineMetrics()
    metrics.running.set(6)
    metrics.waiting.set(3)
    metrics.kv_blocks_used.set(30)
    metrics.kv_blocks_total.set(40)
    assert load_of([metrics.text().decode()]) == EngineLoad(6, 3, 0.75)
    vllm = (
        '# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{engine="0",model_name="m"} 5.0\n'
        'vllm:num_requests_waiting{engine="0",model_name="m"} 2.0\nvllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.9\n'
    )
    assert load_of([vllm, metrics.text().decode()]) == EngineLoad(11, 5, 0.9)
    assert load_of(["python_info 1.0\n"]) is None


def test_a_step_tells_the_limit_and_the_highest_load_since_the_last():
    limit = InflightLimit(floor=GROUP, ceiling=100)
    limit.observe(PRESSED, inflight=100, now_s=0.0)
    limit.observe(FREE, inflight=10, now_s=2.0)
    assert limit.take_metrics() == {
        "inflight_limit": 80,
        "engine_waiting_max": 9,
        "engine_running_max": 10,
        "engine_kv_share_max": 0.1,
    }
    assert limit.take_metrics() == {"inflight_limit": 80}


def test_engines_that_do_not_answer_change_nothing():
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("nobody there")

    limit, changes = InflightLimit(floor=GROUP, ceiling=100), []
    for transport in (httpx.MockTransport(refuse), httpx.MockTransport(lambda _: httpx.Response(404))):
        http = httpx.AsyncClient(transport=transport)
        asyncio.run(EngineLoads(http, ["http://engine"], limit, lambda: 100, lambda: changes.append(1)).look())
    assert (limit.value, changes) == (100, [])
