"""Who teaches in each environment of a run that is asked for, resolved to what the engines serve.

Knows the doors of adapters and checkpoints, and that a teacher reads the pupil's token ids: it stands on the run's own base
model, on the engines of the same pool. Whoever cannot teach is refused by field. Writes nothing.
"""

from typing import Any

from controlplane.adapters.access import access_version, resolve_served_model
from controlplane.adapters.errors import UnknownModel
from controlplane.core.errors import Invalid
from controlplane.core.problems import FieldProblem
from controlplane.runs.access import access_checkpoint
from controlplane.teams.actors import Actor
from trainer.contracts.internal import ServedModel
from trainer.contracts.run_config import RunConfig, Teacher
from trainer.contracts.teaching import FED_BY_OTHERS, Location, teacher_of, teaching_problems

BODY: Location = ("body",)


def check_teaching(config: RunConfig) -> None:
    """Raises Invalid naming every field by which algorithms, teachers and generators contradict each other."""
    problems = teaching_problems(config)
    if problems:
        refused = Invalid(BODY, "The configuration is not valid.")
        refused.problems = [FieldProblem((*BODY, *problem.loc), problem.message) for problem in problems]
        raise refused


def resolve_teachers(actor: Actor, config: RunConfig) -> list[dict[str, Any] | None]:
    """One entry per environment, as the run keeps it (contracts.ServedModel); empty when nobody teaches. Raises Invalid
    or NotFound."""
    teachers = [teacher_of(config, ref) for ref in config.environments]
    places: list[Location] = [
        ("environments", index, "teacher") if ref.teacher else ("teacher",) for index, ref in enumerate(config.environments)
    ]
    served = [
        _served(actor, config, teacher, (*BODY, *place)) if teacher else None
        for teacher, place in zip(teachers, places, strict=True)
    ]
    _refuse_itself(actor, config, served, places)
    return [one and one.model_dump(mode="json") for one in served] if any(served) else []


def _served(actor: Actor, config: RunConfig, teacher: Teacher, loc: Location) -> ServedModel:
    if teacher.checkpoint_id is not None:
        served, base = _of_checkpoint(actor, teacher.checkpoint_id)
        loc = (*loc, "checkpoint_id")
    else:
        assert teacher.model is not None
        loc = (*loc, "model", "name")
        try:
            served, spec, _ = resolve_served_model(actor, teacher.model.name)
        except UnknownModel as error:
            raise Invalid(loc, error.detail, hint=error.hint) from None
        base = spec.id
    if base != config.model.name:
        raise Invalid(
            loc,
            f"the teacher stands on {base}, the run on {config.model.name}: it reads the pupil's token ids, on the same engines",
            hint=f"Name {config.model.name} itself, or an adapter of it.",
        )
    return served


def _of_checkpoint(actor: Actor, checkpoint_id: str) -> tuple[ServedModel, str]:
    """The adapter version of a checkpoint's step, and its base model."""
    checkpoint = access_checkpoint(actor, checkpoint_id)
    adapter = access_version(actor, checkpoint.run_id, checkpoint.step)
    served = ServedModel(engine_name=adapter.engine_name, adapter_path=adapter.path, adapter_digest=adapter.digest)
    return served, adapter.base_model


def _refuse_itself(actor: Actor, config: RunConfig, served: list[ServedModel | None], places: list[Location]) -> None:
    """A run of nothing but distillation whose every teacher is what the policy begins as has nothing to learn."""
    own = _of_checkpoint(actor, config.checkpoint_id)[0] if config.checkpoint_id else ServedModel(engine_name=config.model.name)
    pulled = [config.algorithm_of(ref).id not in FED_BY_OTHERS for ref in config.environments]
    if served and all(pulled) and all(one == own for one in served):
        raise Invalid(
            (*BODY, *places[0]),
            f"the policy begins as {own.engine_name}, which is the teacher too: there is nothing to learn from it",
            hint="Name another teacher, or begin from another checkpoint.",
        )
