"""The trainer through its HTTP: what an orchestrator, an old holder and a careless client see."""

import asyncio
import random
import threading
from contextlib import asynccontextmanager

import httpx
import pytest

from tests.numerics.recorded import TEAM, WEIGHTS, batch, recorded, run_id, sample
from trainer.contracts.adapters import MANIFEST_NAME
from trainer.contracts.training import CheckpointWritten, RunOpened, StepResult, TrainerHealth, TrainerStats
from trainer.core.llama import Llama
from trainer.core.pool import Pool, PoolLimits
from trainer.service import desk as desk_module
from trainer.service.app import create_app
from trainer.service.desk import Desk

RUN_A, RUN_B = run_id("a"), run_id("b")
WINDOW_S = 0.2  # wide, so that a loaded machine cannot part two batches sent at once
MODEL = Llama(WEIGHTS)

ARTIFACT = {"digest": "a" * 64, "size_bytes": 1}


@asynccontextmanager
async def service(root, *, token=None, headers=None, **limits):
    """A client of a fresh service over `root`, which stays on disk when it ends."""
    pool = Pool(MODEL, base_model="tiny", artifact_root=root, limits=PoolLimits(**limits))
    app = create_app(Desk(pool, base_model="tiny", window_s=WINDOW_S), token=token)
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url="http://trainer") as client:
        client.headers.update(headers or {})
        await asyncio.sleep(0)  # the pack loop starts
        yield client


def opening(token: int = 1, **changes) -> dict:
    return {"team_id": TEAM, "fencing_token": token, "optimizer": {"learning_rate": 2e-3}} | changes


async def open_run(client, run=RUN_A, **changes) -> RunOpened:
    reply = await client.put(f"/runs/{run}", json=opening(**changes))
    assert reply.status_code == 200, reply.text
    return RunOpened.model_validate_json(reply.content)


async def send(client, given, token: int = 1) -> httpx.Response:
    body = {"fencing_token": token, "batch": given.model_dump(mode="json")}
    return await client.post(f"/runs/{given.run_id}/steps", json=body)


async def step(client, given, token: int = 1) -> StepResult:
    reply = await send(client, given, token)
    assert reply.status_code == 200, reply.text
    return StepResult.model_validate_json(reply.content)


def refused(reply: httpx.Response) -> tuple[int, str]:
    assert set(reply.json()) == {"detail", "code"}
    return reply.status_code, reply.json()["code"]


async def test_a_step_is_answered_with_a_version_that_is_on_disk(tmp_path):
    async with service(tmp_path) as client:
        opened = await open_run(client)
        assert (opened.step, opened.slot) == (0, 0)
        assert (tmp_path / opened.adapter_path / MANIFEST_NAME).exists()
        (given,) = recorded(RUN_A, 1, seed=1)
        result = await step(client, given)
        assert (tmp_path / result.adapter_path / MANIFEST_NAME).exists()
        assert result.adapter_digest != opened.adapter_digest
        assert result.tokens == sum(len(s.token_ids) for s in given.samples)
        assert {"loss", "grad_norm", "entropy", "mismatch_kl", "learning_rate", "step_s", "queue_s"} <= set(result.metrics)
        assert (result.packs, result.packs_shared, result.replayed) == (1, 0, False)


async def test_batches_sent_at_once_share_a_pack_and_are_counted_once(tmp_path):
    async with service(tmp_path) as client:
        await open_run(client, RUN_A)
        await open_run(client, RUN_B, lora={"rank": 4, "alpha": 8})
        pairs = zip(recorded(RUN_A, 3, seed=1), recorded(RUN_B, 3, seed=2), strict=True)
        results = [await asyncio.gather(step(client, a), step(client, b)) for a, b in pairs]
        stats = TrainerStats.model_validate_json((await client.get("/stats")).content)
        assert all(result.packs_shared == 1 for pair in results for result in pair)
        assert (stats.packs, stats.packs_shared) == (3, 3)
        assert stats.shared_by == {f"{RUN_A},{RUN_B}": 3}
        health = TrainerHealth.model_validate_json((await client.get("/health")).content)
        assert stats.base_digest_now == health.base_digest
        assert (health.slots_used, health.slots_total) == (2, 8)


async def test_a_lone_batch_is_not_held_longer_than_the_window(tmp_path):
    async with service(tmp_path) as client:
        await open_run(client, RUN_A)
        await open_run(client, RUN_B)
        result = await step(client, recorded(RUN_A, 1, seed=1)[0])
        assert result.packs_shared == 0
        assert WINDOW_S * 0.9 <= result.metrics["queue_s"] < WINDOW_S + 2.0


async def test_a_step_sent_twice_is_done_once(tmp_path):
    async with service(tmp_path) as client:
        await open_run(client)
        first, second = recorded(RUN_A, 2, seed=1)
        once, again = await asyncio.gather(step(client, first), step(client, first))
        assert {once.replayed, again.replayed} == {False, True}
        assert once.model_copy(update={"replayed": True}) == again.model_copy(update={"replayed": True})
        assert (await step(client, second)).step == 2
        assert (await step(client, first)).adapter_digest == once.adapter_digest
        later = second.model_copy(update={"step": 9})
        assert refused(await send(client, later)) == (409, "step_out_of_order")


async def test_opening_is_idempotent_and_a_higher_token_takes_over(tmp_path):
    async with service(tmp_path) as client:
        opened = await open_run(client, token=3)
        assert await open_run(client, token=3) == opened
        first, second = recorded(RUN_A, 2, seed=1)
        await step(client, first, token=3)
        taken = await open_run(client, token=5)
        assert (taken.slot, taken.step) == (0, 1)
        assert refused(await send(client, second, token=3)) == (409, "stale_lease")
        assert refused(await client.put(f"/runs/{RUN_A}", json=opening(token=4))) == (409, "stale_lease")
        assert refused(await client.post(f"/runs/{RUN_A}/checkpoints", json={"fencing_token": 3})) == (409, "stale_lease")
        assert refused(await client.delete(f"/runs/{RUN_A}?fencing_token=3")) == (409, "stale_lease")
        assert refused(await send(client, second, token=6)) == (404, "run_not_open")
        assert (await step(client, second, token=5)).step == 2


async def test_an_old_holder_is_refused_after_a_restart_too(tmp_path):
    async with service(tmp_path) as client:
        await open_run(client, token=5)
    async with service(tmp_path) as client:
        assert refused(await client.put(f"/runs/{RUN_A}", json=opening(token=4))) == (409, "stale_lease")
        await open_run(client, token=5)


async def test_a_restarted_service_goes_on_from_the_last_step(tmp_path):
    batches = recorded(RUN_A, 5, seed=1)
    async with service(tmp_path / "cut") as client:
        await open_run(client)
        for given in batches[:2]:
            await step(client, given)
        written = await client.post(f"/runs/{RUN_A}/checkpoints", json={"fencing_token": 1})
        assert CheckpointWritten.model_validate_json(written.content).step == 2
        third = await step(client, batches[2])
    async with service(tmp_path / "cut") as client:
        opened = await open_run(client, token=2)
        assert (opened.step, opened.adapter_digest) == (3, third.adapter_digest)
        assert (await step(client, batches[2], token=2)).replayed
        cut = [await step(client, given, token=2) for given in batches[3:]]
    async with service(tmp_path / "straight") as client:
        await open_run(client)
        straight = [await step(client, given) for given in batches][3:]
    assert [r.adapter_digest for r in cut] == [r.adapter_digest for r in straight]


async def test_a_bad_batch_fails_its_run_alone(tmp_path):
    rng = random.Random(0)
    bad = batch(RUN_B, 1, [sample(rng, 20)])
    over_long = bad.samples[0].model_dump() | {"token_ids": [300] * 20}
    bad = bad.model_copy(update={"samples": [type(bad.samples[0])(**over_long)]})
    async with service(tmp_path) as client:
        await open_run(client, RUN_A)
        await open_run(client, RUN_B)
        good = recorded(RUN_A, 1, seed=1)[0]
        result, reply = await asyncio.gather(step(client, good), send(client, bad))
        assert result.step == 1
        assert refused(reply) == (422, "bad_batch")
        assert "samples[0]: token_ids: 300 is outside the vocabulary" in reply.json()["detail"]
        assert (await step(client, recorded(RUN_B, 1, seed=2)[0])).step == 1


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"advantages": [0.0]}, "advantages has 1 entries"),
        ({"logprobs": None}, "logprobs"),
        ({"surprise": 1}, "surprise"),
        ({"routed_experts": ARTIFACT}, "samples.0.routed_experts: the base model routes no experts"),
        ({"multimodal": ARTIFACT}, "samples.0.multimodal: the base model reads text alone"),
    ],
)
async def test_a_misaligned_batch_is_refused_with_its_field(tmp_path, change, named):
    async with service(tmp_path) as client:
        await open_run(client)
        body = {"fencing_token": 1, "batch": recorded(RUN_A, 1, seed=1)[0].model_dump(mode="json")}
        body["batch"]["samples"][0] |= change
        reply = await client.post(f"/runs/{RUN_A}/steps", json=body)
        assert refused(reply) == (422, "bad_batch") and named in reply.json()["detail"]


async def test_not_a_number_is_refused_on_the_wire(tmp_path):
    async with service(tmp_path) as client:
        await open_run(client)
        text = recorded(RUN_A, 1, seed=1)[0].model_dump_json()
        broken = text.replace('"temperatures":[1.0', '"temperatures":[NaN', 1)
        assert broken != text
        reply = await client.post(f"/runs/{RUN_A}/steps", content=f'{{"fencing_token":1,"batch":{broken}}}')
        assert refused(reply) == (422, "bad_batch")


async def test_a_pass_that_raises_is_taken_again_by_each_run_alone(tmp_path, monkeypatch):
    pass_over = Pool.pass_over

    def raising(pool, pack):
        if any(part.accumulation.adapter.spec.rank == 4 for part in pack.parts):
            raise RuntimeError("out of memory")
        pass_over(pool, pack)

    monkeypatch.setattr(Pool, "pass_over", raising)
    a, b = recorded(RUN_A, 1, seed=1)[0], recorded(RUN_B, 1, seed=2)[0]
    async with service(tmp_path / "both") as client:
        await open_run(client, RUN_A)
        await open_run(client, RUN_B, lora={"rank": 4})
        result, reply = await asyncio.gather(step(client, a), send(client, b))
        assert refused(reply) == (500, "internal")
        assert (await client.get("/health")).status_code == 200
    async with service(tmp_path / "alone") as client:
        await open_run(client, RUN_A)
        assert (await step(client, a)).adapter_digest == result.adapter_digest


async def test_slots_run_out_and_an_idle_run_gives_its_own_up(tmp_path, monkeypatch):
    async with service(tmp_path, slots=1) as client:
        await open_run(client, RUN_A)
        done = await step(client, recorded(RUN_A, 1, seed=1)[0])
        assert refused(await client.put(f"/runs/{RUN_B}", json=opening())) == (503, "no_free_slot")
        monkeypatch.setattr(desk_module, "SLOT_IDLE_S", 0.0)
        assert (await open_run(client, RUN_B)).slot == 0
        assert refused(await send(client, recorded(RUN_A, 2, seed=1)[1])) == (404, "run_not_open")
        assert (await client.delete(f"/runs/{RUN_B}?fencing_token=1")).status_code == 204
        assert (await open_run(client, RUN_A)).adapter_digest == done.adapter_digest


async def test_what_cannot_be_served_is_refused_before_it_trains(tmp_path):
    async with service(tmp_path, rank_max=16) as client:
        assert refused(await client.put(f"/runs/{RUN_A}", json=opening(lora={"rank": 32}))) == (422, "not_servable")
        reply = await client.put(f"/runs/{RUN_A}", json=opening(lora={"target_modules": ["lm_head"]}))
        assert refused(reply) == (422, "not_servable") and "lm_head" in reply.json()["detail"]
        assert refused(await client.put(f"/runs/{RUN_A}", json=opening(init_from="../x"))) == (422, "not_servable")
        await open_run(client)
        assert refused(await client.put(f"/runs/{RUN_A}", json=opening(seed=1))) == (409, "run_mismatch")


async def test_closing_frees_the_slot_and_may_be_repeated(tmp_path):
    async with service(tmp_path) as client:
        await open_run(client)
        assert [(await client.delete(f"/runs/{RUN_A}?fencing_token=1")).status_code for _ in range(2)] == [204, 204]
        assert (await client.get("/health")).json()["slots_used"] == 0
        assert refused(await send(client, recorded(RUN_A, 1, seed=1)[0])) == (404, "run_not_open")


async def test_a_token_guards_everything_but_health(tmp_path):
    async with service(tmp_path, token="secret") as client:
        assert (await client.get("/health")).status_code == 200
        for method, path in (("GET", "/stats"), ("PUT", f"/runs/{RUN_A}"), ("POST", f"/runs/{RUN_A}/steps")):
            for sent in ({}, {"authorization": "Bearer wrong"}):
                assert refused(await client.request(method, path, headers=sent)) == (401, "unauthorized")
        client.headers["authorization"] = "Bearer secret"
        await open_run(client)


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("PUT", "/runs/not-an-id", "{}", 422),
        ("PUT", f"/runs/{RUN_A}", "not json", 422),
        ("PUT", f"/runs/{RUN_A}", '{"team_id": "x", "fencing_token": 0}', 422),
        ("DELETE", f"/runs/{RUN_A}", None, 422),
        ("GET", "/nowhere", None, 404),
        ("GET", f"/runs/{RUN_A}/steps", None, 405),
    ],
)
async def test_nonsense_is_answered_in_the_same_shape(tmp_path, method, path, body, status):
    async with service(tmp_path) as client:
        assert refused(await client.request(method, path, content=body)) == (status, "bad_request")


async def test_the_service_answers_while_a_pass_computes(tmp_path, monkeypatch):
    entered, leave = asyncio.Event(), threading.Event()
    loop, pass_over = asyncio.get_running_loop(), Pool.pass_over

    def slow(pool, pack):
        loop.call_soon_threadsafe(entered.set)
        assert leave.wait(30)
        pass_over(pool, pack)

    monkeypatch.setattr(Pool, "pass_over", slow)
    async with service(tmp_path) as client:
        await open_run(client)
        running = asyncio.create_task(step(client, recorded(RUN_A, 1, seed=1)[0]))
        await entered.wait()
        assert (await client.get("/health")).status_code == 200
        assert not running.done()
        leave.set()
        assert (await running).step == 1
