"""The only place that looks a run up by id. Foreign and absent look the same."""

from django.db.models import Q

from controlplane.core.errors import NotFound
from controlplane.runs.errors import CheckpointRetired
from controlplane.runs.models import Checkpoint, Rollout, Run
from controlplane.teams.access import enter_team_of
from controlplane.teams.actors import Actor
from trainer.contracts.events import RunState


def access_run(actor: Actor, run_id: str, *, lock: bool = False) -> Run:
    """A run of the actor's team, or of another team of the same user. A deleted one is gone for everybody; its bill is not."""
    rows = Run.objects.filter(id=run_id, deleted_at__isnull=True)
    locking = rows.select_for_update(no_key=True) if lock else rows
    run = locking.filter(team=actor.team).first()
    if run is None and (team_id := enter_team_of(actor, rows)):
        run = locking.filter(team_id=team_id).first()
    if run is None:
        raise NotFound(f"There is no run '{run_id}'.", hint="`prime train list` shows yours.")
    return run


def access_rollout(run: Run, rollout_id: str) -> Rollout:
    """A rollout of a run that a door has let the actor into."""
    rows = Rollout.objects.filter(rollout_step__run=run, id=rollout_id).select_related("rollout_step")
    if (row := rows.first()) is None:
        raise NotFound(
            f"The run has no rollout '{rollout_id}'.", hint="An attempt that takes a step again replaces the step's rollouts."
        )
    return row


def access_checkpoint(actor: Actor, checkpoint_id: str, *, lock: bool = False) -> Checkpoint:
    """A checkpoint of the actor's team that can be started from. With `lock` it stays one until the transaction's end."""
    rows = Checkpoint.objects.select_related("run")
    locking = rows.select_for_update(of=("self",)) if lock else rows
    checkpoint = locking.filter(id=checkpoint_id, team=actor.team).first()
    if checkpoint is None:
        raise NotFound(f"There is no checkpoint '{checkpoint_id}'.", hint="`prime train checkpoints RUN` lists a run's.")
    if checkpoint.retired_at is not None:
        raise CheckpointRetired(checkpoint.step, checkpoint.run.config["checkpoints"]["keep_cloud"])
    return checkpoint


def access_recorded(run: Run, recorded_id: str) -> Run:
    """For leased work alone: the run of the same team that `run` learns from, as its configuration names it."""
    recorded = Run.objects.filter(id=recorded_id, team_id=run.team_id).first()
    if recorded is None:
        raise NotFound(f"There is no run '{recorded_id}'.")
    return recorded


def lock_run(run_id: str) -> Run | None:
    """For leased work alone, which the attempt token has tied to this run already."""
    return Run.objects.select_for_update(no_key=True).filter(id=run_id, deleted_at__isnull=True).first()


def weights_in_use() -> set[str]:
    """For the sweep alone: artifact paths that runs begin from, learn from or play against. A failed one may be restarted."""
    needing = Run.objects.exclude(state=RunState.COMPLETED).filter(deleted_at__isnull=True)
    rows = needing.exclude(Q(init_from="") & Q(teachers=[]) & Q(seats=[])).values_list("init_from", "teachers", "seats")
    used: set[str] = set()
    for init_from, teachers, seats in rows.iterator():
        models = [*teachers, *(model for played in seats for model in played.values())]
        used |= {init_from, *(model["adapter_path"] for model in models if model and model.get("adapter_path"))}
    return used
