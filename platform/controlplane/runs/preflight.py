"""What must be true before a run is accepted: funds, model, pool, teachers, environments, warm start. Refusals name the field.

Knows the catalogue and the doors of other apps. Writes nothing.
"""

from dataclasses import dataclass, field
from typing import Any

from controlplane.core.errors import FieldProblem, Invalid
from controlplane.hub.dependencies import startable_release
from controlplane.hub.models import Release
from controlplane.hub.queries import release_spec
from controlplane.pools.access import pool_for_model
from controlplane.pools.errors import NoPool
from controlplane.pools.limits import limits_of
from controlplane.pools.models import Pool
from controlplane.runs import access
from controlplane.runs.algorithm_choices import check_algorithms
from controlplane.runs.datasets import pin_datasets
from controlplane.runs.pool_limits import check_pool_limits
from controlplane.runs.replays import check_replays
from controlplane.runs.request import RunRequest
from controlplane.runs.seats import resolve_seats
from controlplane.runs.teachers import check_teaching, resolve_teachers
from controlplane.teams.actors import Actor
from trainer.contracts.base import new_id
from trainer.contracts.catalogue import load_catalogue
from trainer.contracts.release_checks import UNTRAINED
from trainer.contracts.run_config import EnvironmentRef, RunConfig

Location = tuple[str | int, ...]


@dataclass(frozen=True)
class RunPlan:
    """A run that may be made. `config` is effective: named, versions pinned, every default filled in."""

    config: RunConfig
    request: RunRequest = field(repr=False)
    release_ids: list[str]
    pool: Pool
    init_from: str
    teachers: list[dict[str, Any] | None]
    seats: list[dict[str, Any]]


def plan_run(actor: Actor, request: RunRequest) -> RunPlan:
    """Raises Invalid or NotFound naming the field or the object that is wrong."""
    pool = check_model(request.config.model.name, ("body", "model", "name"))
    check_pool_limits(request.config, limits_of(pool))
    check_teaching(request.config)
    check_algorithms(request.config)
    teachers = resolve_teachers(actor, request.config)
    seats = resolve_seats(actor, request.config)
    config, release_ids = _pin_environments(actor, request)
    check_replays(actor, config)
    config = pin_datasets(actor, config)
    init_from = _warm_start(actor, config) if config.checkpoint_id else ""
    return RunPlan(config, request, release_ids, pool, init_from, teachers, seats)


def check_model(name: str, loc: Location) -> Pool:
    """The pool that serves a base model."""
    catalogue = load_catalogue()
    if name not in catalogue:
        raise Invalid(loc, f"no base model is called {name!r}", hint=f"There are: {', '.join(catalogue) or 'none'}.")
    try:
        return pool_for_model(name)
    except NoPool:
        raise Invalid(loc, f"no pool of this installation runs {name!r}") from None


def _pin_environments(actor: Actor, request: RunRequest) -> tuple[RunConfig, list[str]]:
    config, forced = request.config, request.is_forced
    training = [pin_environment(actor, ref, forced=forced) for ref in config.environments]
    if not forced:
        _refuse_untrained([release for _, release in training])
    evaluated = [pin_environment(actor, ref, forced=forced) for ref in (config.eval.environments if config.eval else [])]
    pinned = {"environments": [ref for ref, _ in training], "name": config.name or _default_name(config, training)}
    if config.eval:
        pinned["eval"] = config.eval.model_copy(update={"environments": [ref for ref, _ in evaluated]})
    return config.model_copy(update=pinned), [release.pk for _, release in (*training, *evaluated)]


def _refuse_untrained(releases: list[Release]) -> None:
    """Raises Invalid naming the environments that are for evaluations alone, as far as their checks could see."""
    problems = [
        FieldProblem(("body", "environments", index, "id"), f"{release.environment.slug}@{release.version}: {UNTRAINED}")
        for index, release in enumerate(releases)
        if release.is_for_evaluations_alone
    ]
    if problems:
        hint = "Its check saw every agent that played. Evaluate models on it, or force the run if it trains others."
        refused = Invalid(problems[0].loc, problems[0].msg, code="not_trainable", hint=hint)
        refused.problems = problems
        raise refused


def pin_environment(actor: Actor, ref: EnvironmentRef, *, forced: bool) -> tuple[EnvironmentRef, Release]:
    """The reference with the version that it means now, and that release."""
    name, at, version = ref.id.partition("@")
    wanted = ref.version or (version if at else None)
    release = startable_release(actor, f"{name}@{wanted}" if wanted else name, forced=forced)
    spec = release_spec(release)
    return ref.model_copy(update={"id": spec.environment, "version": spec.version}), release


def _default_name(config: RunConfig, training: list[tuple[EnvironmentRef, Release]]) -> str:
    first = training[0][0].id.rpartition("/")[2] if training else config.datasets[0].id
    return f"{first[:90]}-{new_id()[1:7]}"


def _warm_start(actor: Actor, config: RunConfig) -> str:
    """The artifact to begin from: a checkpoint of one of the team's runs on the same base model with the same adapter shape."""
    checkpoint = access.access_checkpoint(actor, config.checkpoint_id or "")
    if checkpoint.run.base_model != config.model.name:
        raise Invalid(
            ("body", "checkpoint_id"), f"the checkpoint belongs to {checkpoint.run.base_model}, not {config.model.name}"
        )
    if checkpoint.run.config["lora_rank"] != config.lora_rank:
        raise Invalid(("body", "lora_rank"), f"the checkpoint has rank {checkpoint.run.config['lora_rank']}")
    return checkpoint.path
