"""The live stream of a run: nothing lost, nothing twice, whatever is rung or not, and wherever the reader left off."""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
from asgiref.sync import sync_to_async
from django.contrib.sessions.models import Session
from django.db import connections, transaction
from django.test import AsyncClient

from controlplane.core.tenancy import acting_as_system
from controlplane.runs import services, sse
from controlplane.runs.access import lock_run
from controlplane.runs.history import append_event, save_history
from controlplane.runs.models import Run
from controlplane.teams.access import keys_of
from controlplane.teams.services import revoke_key
from tests.factories.runs import make_funded_member, make_pool, make_run
from tests.factories.teams import PASSWORD
from trainer.contracts.events import EventKind

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
async def threads_give_their_connections_back():
    """A committing test ends with a new database, which the connections of other threads know nothing of."""
    yield
    await sync_to_async(connections.close_all)()


def prepare():
    make_pool()
    member = make_funded_member()
    return member, make_run(member)


def say(run: Run, *texts: str) -> None:
    with acting_as_system(), transaction.atomic():
        locked = lock_run(run.id)
        for text in texts:
            append_event(locked, EventKind.LOG, {"message": text})
        save_history(locked)


def stop(member, run: Run) -> None:
    with acting_as_system():
        services.stop_run(actor=member.actor, run_id=run.id)


say_async, stop_async = sync_to_async(say), sync_to_async(stop)


async def received(stream: AsyncIterator[str]) -> AsyncIterator[dict]:
    """Events of a stream, parsed as a browser does; the end is `{"end": True}`."""
    async for chunk in stream:
        fields = dict(line.split(": ", 1) for line in chunk.strip().splitlines() if not line.startswith(":"))
        if fields.get("event") == "end":
            yield {"end": True}
        elif "data" in fields:
            event = json.loads(fields["data"])
            assert int(fields["id"]) == event["seq"]
            yield event


async def take(events: AsyncIterator[dict], count: int) -> list[dict]:
    async with asyncio.timeout(20):
        return [await anext(events) for _ in range(count)]


def texts(events: list[dict]) -> list[str | None]:
    return [event["payload"].get("message") for event in events if event["kind"] == "log"]


async def test_history_first_then_what_happens(broker):
    member, run = await sync_to_async(prepare)()
    await say_async(run, "before")
    events = received(sse.event_stream(lambda: member.actor, run.id, 0))
    assert [event["kind"] for event in await take(events, 2)] == ["state", "log"]
    await say_async(run, "live")
    assert texts(await take(events, 1)) == ["live"]


async def test_a_reader_that_comes_back_misses_nothing_and_sees_nothing_twice(broker):
    member, run = await sync_to_async(prepare)()
    seen: list[dict] = []
    for round_number in range(3):
        await say_async(run, f"{round_number}a", f"{round_number}b")
        after = seen[-1]["seq"] if seen else 1
        seen += await take(received(sse.event_stream(lambda: member.actor, run.id, after)), 2)
    assert texts(seen) == ["0a", "0b", "1a", "1b", "2a", "2b"]


async def test_more_than_a_page_arrives_whole_and_in_order(broker, monkeypatch):
    monkeypatch.setattr(sse, "PAGE_EVENTS", 3)
    member, run = await sync_to_async(prepare)()
    await say_async(run, *map(str, range(10)))
    await stop_async(member, run)
    events = await take(received(sse.event_stream(lambda: member.actor, run.id, 0)), 13)
    assert texts(events[:-1]) == [str(number) for number in range(10)] and events[-1] == {"end": True}
    assert [event["seq"] for event in events[:-1]] == list(range(1, 13))


async def test_a_lost_ring_delays_and_loses_nothing(broker, monkeypatch):
    monkeypatch.setattr(sse, "POLL_S", 0.05)
    monkeypatch.setattr("controlplane.core.doorbell.ring", lambda channel: None)
    member, run = await sync_to_async(prepare)()
    events = received(sse.event_stream(lambda: member.actor, run.id, 0))
    await take(events, 1)
    await say_async(run, "unheard")
    assert texts(await take(events, 1)) == ["unheard"]


async def test_a_broker_that_is_away_delays_no_history():
    member, run = await sync_to_async(prepare)()
    assert (await take(received(sse.event_stream(lambda: member.actor, run.id, 0)), 1))[0]["kind"] == "state"


async def test_the_stream_ends_with_the_run_and_at_once_for_one_that_ended(broker):
    member, run = await sync_to_async(prepare)()
    events = received(sse.event_stream(lambda: member.actor, run.id, 0))
    await take(events, 1)
    await stop_async(member, run)
    assert [event.get("end") for event in await take(events, 2)] == [None, True]
    assert await take(received(sse.event_stream(lambda: member.actor, run.id, 2)), 1) == [{"end": True}]


def headers(member) -> dict[str, str]:
    return {"Authorization": f"Bearer {member.key}"}


async def test_over_http_the_header_resumes_and_wins_over_the_address(broker):
    member, run = await sync_to_async(prepare)()
    await say_async(run, "first", "second")
    await stop_async(member, run)
    client = AsyncClient()
    path = f"/api/v1/rft/runs/{run.id}/events"
    answer = await client.get(f"{path}?after=1", headers=headers(member) | {"Last-Event-ID": "2"})
    assert answer.status_code == 200 and answer["Content-Type"] == "text/event-stream"
    body = b"".join([chunk async for chunk in answer.streaming_content]).decode()
    assert "first" not in body and "second" in body and body.endswith("event: end\ndata: {}\n\n")
    assert (await client.get(f"{path}?after=x", headers=headers(member))).status_code == 422


async def test_a_foreign_run_has_no_stream(broker):
    _, run = await sync_to_async(prepare)()
    stranger = await sync_to_async(make_funded_member)()
    path = f"/api/v1/rft/runs/{run.id}/events"
    assert (await AsyncClient().get(path, headers=headers(stranger))).status_code == 404
    assert (await AsyncClient().get(path)).status_code == 401


def revoke(member) -> None:
    with acting_as_system():
        (key,) = keys_of(member.actor)
        revoke_key(member.actor, key.id)


async def test_a_stream_closes_when_its_key_is_revoked_and_the_reader_is_then_told(broker, monkeypatch):
    monkeypatch.setattr(sse, "POLL_S", 0.05)
    member, run = await sync_to_async(prepare)()
    client, path = AsyncClient(), f"/api/v1/rft/runs/{run.id}/events"
    answer = await client.get(path, headers=headers(member))
    events = received(chunk.decode() async for chunk in answer.streaming_content)
    await take(events, 1)
    await sync_to_async(revoke)(member)
    async with asyncio.timeout(20):
        assert [event async for event in events] == []
    assert (await client.get(path, headers=headers(member))).json()["code"] == "revoked_key"


async def test_a_stream_closes_when_its_session_is_signed_out(broker, monkeypatch):
    monkeypatch.setattr(sse, "POLL_S", 0.05)
    member, run = await sync_to_async(prepare)()
    client = AsyncClient()
    password = {"email": member.actor.user.email, "password": PASSWORD}
    assert (await client.post("/api/v1/auth/sign-in", password, content_type="application/json")).status_code == 200
    answer = await client.get(f"/api/v1/rft/runs/{run.id}/events")
    events = received(chunk.decode() async for chunk in answer.streaming_content)
    await take(events, 1)
    await sync_to_async(Session.objects.all().delete)()
    async with asyncio.timeout(20):
        assert [event async for event in events] == []
