"""Runs whose recorded rollouts another run learns from: which may be named, and what is read of them.

Knows rows and stored bodies of the team's own runs. Refuses to know how a rollout is trained on.
"""

from dataclasses import dataclass
from typing import Any

from controlplane.core.errors import Invalid, NotFound
from controlplane.pools.bodies import read_body
from controlplane.pools.masking import masker
from controlplane.runs.access import access_recorded, access_run
from controlplane.runs.models import RolloutStep, Run
from controlplane.runs.states import RunKind, is_terminal
from controlplane.teams.actors import Actor
from trainer.contracts.events import RunState
from trainer.contracts.internal import ReplaySpec, ReplayStep
from trainer.contracts.run_config import EnvironmentRef, RunConfig

TAG = "train"
"""Evaluations call the chat route, of which no token ids are recorded."""


@dataclass(frozen=True)
class Recorded:
    """One step's stored body, and which environments of its run count."""

    body_key: str
    names: list[str]
    sealed_secrets: str


def check_replays(actor: Actor, config: RunConfig) -> None:
    """Raises Invalid naming the environment whose record cannot be learnt from. Environments are pinned already."""
    for index, ref in enumerate(config.environments):
        if ref.replay is not None:
            problem = _problem(actor, config, ref, ref.replay.run_id)
            if problem:
                raise Invalid(("body", "environments", index, "replay", "run_id"), problem)


def _problem(actor: Actor, config: RunConfig, ref: EnvironmentRef, run_id: str) -> str:
    try:
        source = access_run(actor, run_id)
    except NotFound as error:
        return error.detail
    if source.team_id != actor.team.id:
        return f"There is no run '{run_id}'."
    if source.kind == RunKind.EXTERNAL:
        return "it was trained elsewhere, whose token ids are not known here"
    if source.base_model != config.model.name:
        return f"it ran on {source.base_model}; its token ids mean nothing to {config.model.name}"
    if not is_terminal(RunState(source.state)):
        return f"it is {source.state}; a run can be replayed once it has ended"
    if not _names(source, ref.id):
        return f"it has no rollouts of {ref.id}"
    return "" if _steps(source).exists() else "it has recorded no rollouts"


def replay_specs(run: Run) -> list[ReplaySpec | None]:
    """One entry per environment of the run; empty when nothing is replayed."""
    refs = RunConfig.model_validate(run.config).environments
    specs = [_spec(run, ref.replay.run_id) if ref.replay else None for ref in refs]
    return specs if any(specs) else []


def recorded_step(run: Run, environment: int, step: int) -> Recorded:
    """What the holder of `run` may read for one of its environments. Raises NotFound for anything that it does not replay."""
    refs = RunConfig.model_validate(run.config).environments
    ref = refs[environment] if environment < len(refs) else None
    row = None
    if ref is not None and ref.replay is not None:
        source = access_recorded(run, ref.replay.run_id)
        row = _steps(source).filter(step=step).first()
    if ref is None or row is None:
        raise NotFound(f"environments.{environment} replays no step {step}")
    return Recorded(row.body_key, _names(source, ref.id), source.sealed_secrets)


def rollouts_of(recorded: Recorded) -> list[dict[str, Any]]:
    """The good rollouts of the step, as they were reported, secrets masked."""
    mask = masker(recorded.sealed_secrets)
    records = read_body(recorded.body_key)
    return [mask(one) for one in records if one.get("state") == "ok" and one.get("environment") in recorded.names]


def _spec(run: Run, source_id: str) -> ReplaySpec:
    source = access_recorded(run, source_id)
    steps = [ReplayStep(step=row.step, rollouts_count=row.rollouts_count) for row in _steps(source)]
    return ReplaySpec(run_id=source_id, steps=steps)


def _steps(source: Run) -> Any:
    return RolloutStep.objects.filter(run=source, tag=TAG).order_by("step")


def _names(source: Run, environment: str) -> list[str]:
    """How the source's rollouts call an environment: one that was trained on under its id."""
    config = RunConfig.model_validate(source.config)
    named = zip(config.environment_names(), config.environments, strict=False)
    return [name for name, ref in named if ref.id == environment]
