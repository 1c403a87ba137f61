"""Reads over adapters for lists, the gateway and the reconciler. Decides nothing."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from django.db.models import Q, QuerySet

from controlplane.adapters.models import Adapter, DeploymentStatus, Export, ExportState
from controlplane.pools.models import Lease
from controlplane.teams.models import Team
from trainer.contracts.events import TERMINAL_STATES
from trainer.contracts.generation import LoadAdapter

UNSETTLED = (DeploymentStatus.DEPLOYING, DeploymentStatus.UNLOADING)


def team_adapters(team: Team) -> QuerySet[Adapter]:
    """The team's kept adapters, newest first."""
    return Adapter.objects.select_related("run").filter(team=team, is_kept=True).order_by("-created_at", "-id")


def trained_on(rows: QuerySet[Adapter], releases: Sequence[str]) -> QuerySet[Adapter]:
    """Those whose run had one of these releases, to train on or to be evaluated by."""
    used = Q(pk__in=[])
    for release_id in releases:
        used |= Q(run__releases__contains=[release_id])
    return rows.filter(used)


def deployed_adapters(team: Team) -> QuerySet[Adapter]:
    return team_adapters(team).filter(deployment_status=DeploymentStatus.DEPLOYED)


def load_order(adapter: Adapter) -> LoadAdapter:
    """What an engine of the adapter's pool is told, to load it. Only for adapters that have a pool."""
    assert adapter.pool is not None
    path = PurePosixPath(adapter.pool.artifact_root) / adapter.path
    return LoadAdapter(lora_name=adapter.engine_name, lora_path=str(path), digest=adapter.digest)


def is_held_by_run(adapter: Adapter) -> bool:
    """Whether the run that made the adapter may still be sampling from it: then the run's orchestrator drops it, nobody else."""
    return adapter.run.state not in TERMINAL_STATES


def to_reconcile() -> list[Adapter]:
    """Everything that engines must hold, and everything that is on its way in or out, of all teams."""
    wanted = Q(is_wanted=True, deployment_status=DeploymentStatus.DEPLOYED) | Q(deployment_status__in=UNSETTLED)
    return list(Adapter.objects.select_related("run", "pool").filter(wanted).order_by("pool_id", "id"))


def unbuilt_exports(*, limit: int) -> list[str]:
    """Ids of exports that nobody works on and that are not written, the longest waiting first. For the worker."""
    leased = Lease.objects.filter(subject_kind="export", released_at__isnull=True).values("subject_id")
    waiting = Export.objects.filter(state__in=(ExportState.QUEUED, ExportState.BUILDING)).exclude(id__in=leased)
    return list(waiting.order_by("created_at").values_list("id", flat=True)[:limit])
