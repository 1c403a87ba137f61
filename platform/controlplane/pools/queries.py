"""Reads over pools and leases for schedulers and reconcilers. Decides nothing."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from controlplane.core.clock import now
from controlplane.core.tenancy import acting_as_system
from controlplane.pools.models import Lease, Pool
from trainer.contracts.internal import PoolSpec

REPORTED = frozenset({"completed", "failed", "stopped", "paused"})
"""Ends of leases whose holder said how it went."""


def live_count(subject_kind: str, *, pool: Pool | None = None) -> int:
    """How many subjects of a kind are being worked on, in one pool or everywhere."""
    leases = Lease.objects.filter(subject_kind=subject_kind, released_at__isnull=True)
    return (leases.filter(pool=pool) if pool else leases).count()


def live_count_by_team(subject_kind: str, pool: Pool) -> dict[str, int]:
    counts: dict[str, int] = {}
    leases = Lease.objects.filter(subject_kind=subject_kind, pool=pool, released_at__isnull=True)
    for team_id in leases.values_list("team_id", flat=True):
        counts[team_id] = counts.get(team_id, 0) + 1
    return counts


def live_leases() -> list[Lease]:
    return list(Lease.objects.filter(released_at__isnull=True).order_by("expires_at"))


def ended_leases_since(seconds: float) -> list[Lease]:
    """Leases that were taken back lately and had a process: what is left of it must not run on."""
    since = now() - timedelta(seconds=seconds)
    return list(Lease.objects.filter(released_at__gte=since, holder_pid__isnull=False))


def base_models_served() -> set[str]:
    return set(Pool.objects.values_list("base_model", flat=True))


def pools() -> list[Pool]:
    return list(Pool.objects.order_by("name"))


def pools_with_load() -> list[tuple[Pool, int]]:
    """Each pool with the number of runs at work on it, whosever they are."""
    with acting_as_system():
        return [(pool, live_count("run", pool=pool)) for pool in pools()]


@dataclass(frozen=True)
class SandboxRecord:
    """How the newest release checks ended, each of which needs a sandbox: `lost` are those whose process did not report."""

    last_at: datetime | None
    ended: int
    lost: int


def sandbox_record(newest: int = 10) -> SandboxRecord:
    """Of every team's checks: what is told of them names nobody."""
    with acting_as_system():
        leases = Lease.objects.filter(subject_kind="release", released_at__isnull=False).order_by("-released_at")
        ended = list(leases.values_list("released_at", "end_reason")[:newest])
    lost = sum(reason not in REPORTED for _, reason in ended)
    return SandboxRecord(ended[0][0] if ended else None, len(ended) - lost, lost)


def pool_spec(pool: Pool) -> PoolSpec:
    return PoolSpec(
        name=pool.name,
        trainer_url=pool.trainer_url,
        pool_url=pool.pool_url,
        inference_urls=pool.inference_urls,
        artifact_root=pool.artifact_root,
    )


def has_ended(*, subject_id: str, attempt: int, fencing_token: int, before: datetime) -> bool:
    """Whether this installation granted that lease and it ended before `before`. False for a lease that it never granted."""
    lease = Lease.objects.filter(subject_id=subject_id, attempt=attempt, fencing_token=fencing_token)
    return lease.filter(released_at__lte=before).exists()
