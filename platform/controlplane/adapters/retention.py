"""Which adapter versions nobody can reach any more, so that their files may go.

Of a run that is over, a version is out of reach when the plan does not keep it, nobody serves or exports it, a newer checkpoint
is what the run would go on from, and no checkpoint of its own step is there to be deployed or taught by. An hour passes first, so
that what was made of a version a moment ago has been written down. Refuses to know files and folders, and what else was made of
versions: the caller tells (`in_use`).
"""

from collections.abc import Collection
from datetime import timedelta

from django.db.models import Exists, OuterRef, Q

from controlplane.adapters.models import Adapter, DeploymentStatus, Export, ExportState
from controlplane.core.clock import now
from controlplane.runs.models import Checkpoint
from trainer.contracts.events import TERMINAL_STATES

AT_ONCE = 200
SETTLED_AFTER = timedelta(hours=1)


def unreachable_versions(in_use: Collection[str]) -> list[Adapter]:
    """Those whose files may still be there, the oldest first. `in_use` are paths that evaluations and runs read from."""
    settled = now() - SETTLED_AFTER
    checkpoints = Checkpoint.objects.filter(run=OuterRef("run"))
    newer = checkpoints.filter(step__gt=OuterRef("step"), retired_at__isnull=True)
    own = checkpoints.filter(Q(retired_at__isnull=True) | Q(retired_at__gt=settled), step=OuterRef("step"))
    exporting = Export.objects.filter(adapter=OuterRef("pk"), state__in=(ExportState.QUEUED, ExportState.BUILDING))
    idle = Adapter.objects.filter(is_kept=False, is_wanted=False, deployment_status=DeploymentStatus.NOT_DEPLOYED)
    over = idle.filter(updated_at__lt=settled, run__state__in=TERMINAL_STATES, run__finished_at__lt=settled)
    found = over.filter(Exists(newer), ~Exists(own), ~Exists(exporting), removed_at__isnull=True, pool__isnull=False)
    return list(found.exclude(path__in=in_use).select_related("pool").order_by("created_at", "id")[:AT_ONCE])


def record_removed(adapter: Adapter) -> None:
    Adapter.objects.filter(id=adapter.id).update(removed_at=now())
