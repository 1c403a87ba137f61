"""Forks: a new run that goes on where another was at a checkpoint, with moments, schedule position and place in the data.

Knows what a fork takes over and what it may not change. Refuses to know how a run is made: what comes out of here is a request
like any other, and its origin. The other run stays as it is; the fork has its own steps, segment and bill.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from controlplane.core.errors import Conflict, FieldProblem, Invalid
from controlplane.core.sealing import unseal
from controlplane.runs.access import access_checkpoint
from controlplane.runs.models import Checkpoint
from controlplane.teams.actors import Actor
from trainer.contracts.run_config import RunConfig

FIXED = ("model.name", "lora_rank", "lora_alpha", "algorithm.id")
"""What the moments and the algorithms' memory are about."""
NAME_LENGTH_MAX = 100


@dataclass(frozen=True)
class Origin:
    """Where a fork begins. `body` is the request of the run that it shall be."""

    checkpoint: Checkpoint
    body: dict[str, Any]

    def check(self, config: RunConfig) -> None:
        """Raises Invalid naming each field that a fork cannot change."""
        mine, theirs = config.model_dump(mode="json"), self.checkpoint.run.config
        problems = [
            FieldProblem(("body", *path.split(".")), f"the checkpoint's run has {_at(theirs, path)!r}, which a fork keeps")
            for path in FIXED
            if _at(mine, path) != _at(theirs, path)
        ]
        if config.max_steps <= self.checkpoint.step:
            message = f"the checkpoint is of step {self.checkpoint.step}; nothing would be left to train"
            problems.append(FieldProblem(("body", "max_steps"), message))
        if problems:
            refused = Invalid(("body",), "A fork goes on with the same adapter and algorithm.")
            refused.problems = problems
            raise refused

    def recorded(self) -> dict[str, Any]:
        row = self.checkpoint
        return {"checkpoint_id": row.id, "run_id": row.run_id, "step": row.step, "position": row.position}


def origin_of(actor: Actor, checkpoint_id: str, changes: Any) -> Origin:
    """The configuration of the checkpoint's run with `changes` laid over it. Raises NotFound and Conflict."""
    checkpoint = access_checkpoint(actor, checkpoint_id)
    run = checkpoint.run
    if checkpoint.position is None:
        raise Conflict(
            f"the checkpoint of step {checkpoint.step} does not tell where its run was in its data",
            hint="Begin a new run from it with checkpoint_id, or fork a checkpoint that was written since the upgrade.",
        )
    if not isinstance(changes, Mapping):
        raise Invalid(("body",), "the body must be a JSON object")
    if changes.get("checkpoint_id", checkpoint.id) != checkpoint.id:
        raise Invalid(("body", "checkpoint_id"), "a fork goes on from the checkpoint of its address; leave this out")
    secrets = [{"key": key, "value": value} for key, value in unseal(run.sealed_secrets).items()]
    inherited = {name: value for name, value in run.config.items() if value is not None} | {
        "name": f"{run.name[: NAME_LENGTH_MAX - 5]}-fork",
        "run_config": run.client_config,
        "secrets": secrets,
    }
    return Origin(checkpoint, _laid_over(inherited, changes) | {"checkpoint_id": checkpoint.id})


def _laid_over(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Tables are merged; everything else, lists too, is replaced."""
    merged = dict(base)
    for name, value in changes.items():
        below = merged.get(name)
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        merged[name] = _laid_over(below, value) if both else value
    return merged


def _at(table: Any, path: str) -> Any:
    for name in path.split("."):
        table = table[name]
    return table
