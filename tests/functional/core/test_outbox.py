"""What follows from a commit happens at least once, and nothing follows from a rollback."""

from datetime import timedelta

import pytest
from django.db import transaction

from controlplane.core import outbox
from controlplane.core.models import OutboxMessage

pytestmark = pytest.mark.django_db


def emit(key: str, **payload: object) -> None:
    with transaction.atomic():
        outbox.emit(task="runs.start_run", key=key, payload=payload)


def test_a_message_is_claimed_once_while_its_lease_lasts():
    emit("run:1:start", run_id="1")
    (message,) = outbox.claim()
    assert (message.task, message.payload, message.attempts_count) == ("runs.start_run", {"run_id": "1"}, 1)
    assert outbox.claim() == []


def test_a_claimer_that_dies_is_followed_and_cannot_settle_afterwards(shift_clock):
    emit("run:1:start")
    (first,) = outbox.claim()
    shift_clock(timedelta(seconds=outbox.LEASE_S + 1))
    (second,) = outbox.claim()
    outbox.mark_done(first)
    assert OutboxMessage.objects.get(key="run:1:start").done_at is None
    outbox.mark_done(second)
    assert OutboxMessage.objects.get(key="run:1:start").done_at is not None


def test_the_same_key_is_one_message():
    emit("run:1:start", n=1)
    emit("run:1:start", n=2)
    assert [message.payload for message in outbox.claim()] == [{"n": 1}]


def test_a_rollback_takes_the_message_back():
    with pytest.raises(RuntimeError), transaction.atomic():
        outbox.emit(task="runs.start_run", key="run:1:start", payload={})
        raise RuntimeError
    assert outbox.claim() == []


def test_a_failure_waits_longer_each_time_and_ends_visibly(shift_clock):
    emit("run:1:start")
    for _ in range(outbox.ATTEMPTS_MAX):
        (message,) = outbox.claim()
        outbox.mark_failed(message, "boom")
        assert outbox.claim() == []
        shift_clock(timedelta(seconds=outbox.BACKOFF_S_MAX))
    assert outbox.claim() == []
    ended = OutboxMessage.objects.get(key="run:1:start")
    assert ended.failed_at is not None and ended.last_error == "boom"


def test_a_delayed_message_waits(shift_clock):
    with transaction.atomic():
        outbox.emit(task="runs.start_run", key="later", payload={}, delay_s=60)
    assert outbox.claim() == []
    shift_clock(timedelta(seconds=61))
    assert len(outbox.claim()) == 1


@pytest.mark.django_db(transaction=True)
def test_outside_a_transaction_it_is_refused():
    with pytest.raises(RuntimeError, match="outside a transaction"):
        outbox.emit(task="runs.start_run", key="x", payload={})


@pytest.mark.django_db(transaction=True)
def test_the_bell_rings_on_commit_and_a_broken_bell_loses_nothing(broker):
    import redis

    emit("run:1:start")
    assert redis.Redis.from_url(broker).llen("celery") == 1


@pytest.mark.django_db(transaction=True)
def test_a_broker_that_is_away_is_no_error():
    emit("run:1:start")
    assert len(outbox.claim()) == 1
