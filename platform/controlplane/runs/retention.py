"""Which checkpoints a run's plan drops: all but the newest `checkpoints.keep_cloud`, and none that is needed.

Two steps, each safe to repeat. A checkpoint is *retired* in one transaction: nobody can begin from it from then on. Its files go
afterwards (`workers/checkpoints.py`). The newest one stays whatever the plan says, since the run itself goes on from it; so does
one that a run which is not over was told to begin from. Deployments need none: they are made of adapter versions. Refuses to know
files and folders.
"""

from django.db import transaction
from django.db.models import Count, Q

from controlplane.core.clock import now
from controlplane.runs import access
from controlplane.runs.models import Checkpoint, Run
from trainer.contracts.events import TERMINAL_STATES

AT_ONCE = 200


def retire_checkpoints() -> int:
    """Of every run whose plan keeps fewer than there are; returns how many were retired."""
    kept = Count("checkpoints", filter=Q(checkpoints__retired_at__isnull=True))
    limited = Run.objects.filter(config__checkpoints__keep_cloud__gte=0, deleted_at__isnull=True)
    over = limited.annotate(kept=kept).filter(kept__gt=1).order_by("id")
    return sum(_retire_of(run_id) for run_id in list(over.values_list("id", flat=True)))


@transaction.atomic
def _retire_of(run_id: str) -> int:
    run = access.lock_run(run_id)
    if run is None:
        return 0
    keep = max(1, run.config["checkpoints"]["keep_cloud"])
    # Locked before their users are looked for: a run that is being made holds the row that it begins from.
    rows = list(Checkpoint.objects.select_for_update().filter(run=run, retired_at__isnull=True).order_by("-step"))
    dropped = rows[keep:]
    users = Run.objects.exclude(state__in=TERMINAL_STATES).filter(init_from__in=[row.path for row in dropped])
    needed = set(users.values_list("init_from", flat=True))
    retired = [row.id for row in dropped if row.path not in needed]
    return Checkpoint.objects.filter(id__in=retired).update(retired_at=now())


def unremoved_checkpoints() -> list[Checkpoint]:
    """Retired ones whose files may still be there, the oldest first."""
    rows = Checkpoint.objects.filter(retired_at__isnull=False, removed_at__isnull=True, run__pool__isnull=False)
    return list(rows.select_related("run__pool").order_by("retired_at", "id")[:AT_ONCE])


def record_removed(checkpoint: Checkpoint) -> None:
    Checkpoint.objects.filter(id=checkpoint.id, retired_at__isnull=False).update(removed_at=now())
