"""The door to runs that train elsewhere: found as every run is, and refused where nobody outside may report."""

from controlplane.ingest.errors import NotExternal, RunEnded
from controlplane.runs.access import access_run
from controlplane.runs.models import Run
from controlplane.runs.states import RunKind, is_terminal
from controlplane.teams.actors import Actor
from trainer.contracts.events import RunState


def access_external(actor: Actor, run_id: str, *, lock: bool = False) -> Run:
    """An external run of the actor's team. Raises NotFound, or NotExternal for one that is trained here."""
    run = access_run(actor, run_id, lock=lock)
    if run.kind != RunKind.EXTERNAL:
        raise NotExternal(run_id)
    return run


def access_reporting(actor: Actor, run_id: str, *, lock: bool = False) -> Run:
    """One that still takes reports. Raises RunEnded for another."""
    run = access_external(actor, run_id, lock=lock)
    if is_terminal(RunState(run.state)):
        raise RunEnded(run.state)
    return run
