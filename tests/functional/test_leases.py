"""Leases: one holder a subject, tokens that only grow, and a holder that was fenced writes nothing."""

from datetime import timedelta

import pytest

from controlplane.core.errors import StaleLease, Unauthorized
from controlplane.core.tenancy import acting_as_system
from controlplane.pools import access, services
from controlplane.pools.errors import LeaseTaken
from controlplane.pools.models import Lease
from controlplane.runs.models import Run
from tests.factories.runs import fresh, lease_run, make_funded_member, make_pool, make_run
from trainer.contracts.events import RunState
from trainer.contracts.internal import Heartbeat

pytestmark = pytest.mark.django_db


@pytest.fixture
def pool():
    return make_pool()


@pytest.fixture
def run(pool) -> Run:
    return make_run(make_funded_member())


@pytest.fixture
def system():
    with acting_as_system():
        yield


def test_the_token_is_stored_hashed_and_shown_once(pool, run, system):
    granted = lease_run(pool)
    assert granted.token not in str(Lease.objects.values_list()[0])
    assert granted.token not in repr(granted)
    assert access.attempt_of(granted.token).id == granted.lease.id


def test_a_subject_has_one_live_lease(pool, run, system):
    lease_run(pool)
    with pytest.raises(LeaseTaken):
        services.grant_lease(subject_kind="run", subject_id=run.id, team_id=run.team_id, pool=pool)


def test_fencing_tokens_grow_with_each_lease(pool, run, system):
    tokens = []
    for _ in range(3):
        granted = lease_run(pool)
        tokens.append(granted.lease.fencing_token)
        services.take_back(granted.lease.id, reason="lost", only_expired=False)
        Run.objects.filter(id=run.id).update(eligible_at=access.now())
    assert tokens == [1, 2, 3]


def test_an_unknown_token_and_an_ended_one_are_told_apart(pool, run, system):
    granted = lease_run(pool)
    with pytest.raises(Unauthorized):
        access.attempt_of("rsa_guess")
    services.release_lease(granted.lease, reason="completed")
    with pytest.raises(StaleLease):
        access.attempt_of(granted.token)


def test_a_lease_expires_by_the_databases_clock_and_a_heartbeat_moves_that_on(pool, run, system, shift_clock):
    granted = lease_run(pool)
    services.extend_lease(granted.lease, Heartbeat(step=1, phase="warming up", inflight=4))
    shift_clock(timedelta(seconds=services.LEASE_S - 5))
    services.extend_lease(granted.lease, Heartbeat())
    shift_clock(timedelta(seconds=services.LEASE_S - 5))
    assert access.attempt_of(granted.token)
    shift_clock(timedelta(seconds=6))
    with pytest.raises(StaleLease):
        access.attempt_of(granted.token)


def test_only_an_expired_lease_is_taken_back_as_such(pool, run, system, shift_clock):
    granted = lease_run(pool)
    assert services.take_back(granted.lease.id, reason="silent", only_expired=True) is None
    shift_clock(timedelta(seconds=services.LAUNCH_GRACE_S + 1))
    assert services.take_back(granted.lease.id, reason="silent", only_expired=True) is not None
    assert services.take_back(granted.lease.id, reason="silent", only_expired=True) is None, "a lease ends once"
    assert fresh(run).state == RunState.QUEUED


def test_a_fenced_holder_cannot_prove_its_lease_even_when_it_looked_before(pool, run, system):
    """The look before the transaction is only a glimpse: the proof locks the subject and looks again."""
    granted = lease_run(pool)
    with services.proven(granted.token) as held:
        assert held.row.id == run.id
    services.release_lease(granted.lease, reason="restarted")
    with pytest.raises(StaleLease), services.proven(granted.token):
        pytest.fail("a fenced holder was let in")


def test_a_holder_that_starts_too_late_is_refused(pool, run, system):
    granted = lease_run(pool)
    services.release_lease(granted.lease, reason="stopped")
    assert services.record_holder(granted.lease, host="here", pid=1, started=1) is False
