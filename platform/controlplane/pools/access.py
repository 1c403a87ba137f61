"""The doors to pools and leases. An attempt token opens exactly one lease; nothing else finds a lease by secret."""

import hashlib

from controlplane.core.clock import now
from controlplane.core.errors import StaleLease, Unauthorized
from controlplane.pools.errors import NoPool
from controlplane.pools.models import Lease, Pool


def token_digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def attempt_of(token: str, *, lock: bool = False) -> Lease:
    """The live lease of an attempt token. A token that was live once answers `StaleLease`, an unknown one `Unauthorized`."""
    leases = Lease.objects.select_for_update() if lock else Lease.objects
    lease = leases.filter(token_sha256=token_digest(token)).first()
    if lease is None:
        raise Unauthorized("unknown attempt token")
    if lease.released_at is not None or lease.expires_at <= now():
        raise StaleLease("the lease of this attempt has ended; stop at once")
    return lease


def live_lease(subject_kind: str, subject_id: str, *, lock: bool = False) -> Lease | None:
    """The lease under which somebody works on the subject now, expired or not, as long as nobody took it back."""
    leases = Lease.objects.select_for_update() if lock else Lease.objects
    return leases.filter(subject_kind=subject_kind, subject_id=subject_id, released_at__isnull=True).first()


def lease_by_id(lease_id: str, *, lock: bool = False) -> Lease:
    leases = Lease.objects.select_for_update() if lock else Lease.objects
    return leases.get(id=lease_id)


def pool_for_model(base_model: str) -> Pool:
    """The pool that serves a base model; `NoPool` when the catalogue has the model but no machine runs it."""
    pool = Pool.objects.filter(base_model=base_model).order_by("created_at").first()
    if pool is None:
        raise NoPool(base_model)
    return pool


def any_pool() -> Pool:
    """For work that needs a place to run and no model of ours; `NoPool` where there is none at all."""
    pool = Pool.objects.filter(eval_slots__gt=0).order_by("created_at").first()
    if pool is None:
        raise NoPool("any model")
    return pool


def lock_pool(pool_id: str) -> Pool:
    """For schedulers: who holds this row decides alone what the pool's free places go to."""
    return Pool.objects.select_for_update(no_key=True).get(id=pool_id)
