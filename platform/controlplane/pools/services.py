"""Writes to pools and leases. One transaction each, no network, no process: workers start what a lease allows."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

from django.db import IntegrityError, transaction
from django.db.models import Max

from controlplane.core.clock import now
from controlplane.core.errors import StaleLease
from controlplane.pools import access
from controlplane.pools.errors import LeaseTaken
from controlplane.pools.models import Lease, Pool
from controlplane.pools.subjects import Held, subject_of
from trainer.contracts.internal import Heartbeat

LEASE_S = 30.0
"""A holder that has not been heard of for this long has lost its subject. Holders beat several times within it."""
LAUNCH_GRACE_S = 60.0
"""From the grant to the first sign of life: a cold start of a process on loaded cores."""


@dataclass(frozen=True)
class GrantedAttempt:
    """The token exists here and in the holder's environment, nowhere else."""

    lease: Lease
    token: str = field(repr=False)


def register_pool(*, name: str, **columns: object) -> Pool:
    """Create the pool of that name, or set its columns anew."""
    pool, _ = Pool.objects.update_or_create(name=name, defaults=columns)
    return pool


@transaction.atomic
def grant_lease(*, subject_kind: str, subject_id: str, team_id: str, pool: Pool | None, segment: int = 1) -> GrantedAttempt:
    """Open the next attempt on a subject. The caller holds the subject's row; `LeaseTaken` when somebody works on it."""
    earlier = Lease.objects.filter(subject_kind=subject_kind, subject_id=subject_id)
    fencing_token = (earlier.aggregate(newest=Max("fencing_token"))["newest"] or 0) + 1
    token = "rsa_" + secrets.token_urlsafe(32)
    try:
        with transaction.atomic():
            lease = Lease.objects.create(
                subject_kind=subject_kind,
                subject_id=subject_id,
                team_id=team_id,
                pool=pool,
                attempt=fencing_token,
                segment=segment,
                fencing_token=fencing_token,
                token_sha256=access.token_digest(token),
                expires_at=now() + timedelta(seconds=LAUNCH_GRACE_S),
            )
    except IntegrityError as error:
        raise LeaseTaken(f"{subject_kind} {subject_id}") from error
    return GrantedAttempt(lease, token)


def record_holder(lease: Lease, *, host: str, pid: int, started: int) -> bool:
    """Note which process holds the lease. False when the lease ended meanwhile: the process must be killed."""
    holder = {"holder_host": host, "holder_pid": pid, "holder_started": started}
    return Lease.objects.filter(id=lease.id, released_at__isnull=True).update(**holder) == 1


def extend_lease(lease: Lease, beat: Heartbeat) -> None:
    """The holder lives: move the expiry on. The caller has proven the lease."""
    moment = now()
    lease.heartbeat_at, lease.expires_at = moment, moment + timedelta(seconds=LEASE_S)
    lease.phase, lease.inflight = beat.phase[:200], max(0, beat.inflight)
    lease.save(update_fields=["heartbeat_at", "expires_at", "phase", "inflight"])


def release_lease(lease: Lease, *, reason: str) -> None:
    """End a lease. From here on its token opens nothing, whatever its holder still does. Twice is once."""
    Lease.objects.filter(id=lease.id, released_at__isnull=True).update(released_at=now(), end_reason=reason[:32])


@contextmanager
def proven(token: str) -> Iterator[Held]:
    """One transaction in which the token's lease is live and stays so until the commit.

    The subject's row is locked before the lease's: every other writer does the same, and none can fence the holder in between.
    """
    with transaction.atomic():
        glimpsed = access.attempt_of(token)
        subject = subject_of(glimpsed.subject_kind)
        row = subject.lock(glimpsed.subject_id)
        if row is None:
            raise StaleLease("the subject of this attempt is gone; stop at once")
        yield Held(access.attempt_of(token, lock=True), row, subject)


@transaction.atomic
def take_back(lease_id: str, *, reason: str, only_expired: bool) -> Lease | None:
    """End the lease of a holder that is lost and tell the subject. None when the lease lives, or ended another way."""
    glimpsed = access.lease_by_id(lease_id)
    subject = subject_of(glimpsed.subject_kind)
    row = subject.lock(glimpsed.subject_id)
    lease = access.lease_by_id(lease_id, lock=True)
    if lease.released_at is not None or (only_expired and lease.expires_at > now()):
        return None
    release_lease(lease, reason=reason)
    if row is not None:
        subject.on_lost(row, lease)
    return lease
