"""The part of an attempt's orders that is the same for whatever is leased: whose work it is, under which lease, on which pool."""

from typing import Any

from controlplane.pools.models import Lease
from controlplane.pools.queries import pool_spec
from controlplane.pools.services import LEASE_S


def orders_of(lease: Lease) -> dict[str, Any]:
    """Fields of `AttemptSpec`; the subject adds the work itself."""
    return {
        "kind": lease.subject_kind,
        "subject_id": lease.subject_id,
        "team_id": lease.team_id,
        "attempt": lease.attempt,
        "segment": lease.segment,
        "fencing_token": lease.fencing_token,
        "lease_s": LEASE_S,
        "pool": pool_spec(lease.pool) if lease.pool else None,
    }
