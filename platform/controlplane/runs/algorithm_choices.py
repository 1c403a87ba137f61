"""Whether the algorithms and group rewards of a run can do their work: their options, and the groups that they compare.

Knows the contract of algorithms. Writes nothing.
"""

from collections.abc import Iterator
from dataclasses import replace

from pydantic import ValidationError

from controlplane.core.errors import Invalid
from controlplane.core.problems import FieldProblem, validation_problems
from trainer.contracts.algorithms import GROUP_RELATIVE, OPTIONS
from trainer.contracts.run_config import AlgorithmChoice, EnvironmentRef, RunConfig

Location = tuple[str | int, ...]
ALONE = sorted(OPTIONS.keys() - GROUP_RELATIVE)


def check_algorithms(config: RunConfig) -> None:
    """Raises Invalid that names every field by which an algorithm could not work."""
    problems = [*_options(config.algorithm, ("body", "algorithm"))]
    for index, ref in enumerate(config.environments):
        problems += _environment(config, ref, ("body", "environments", index))
    for index, ref in enumerate(config.eval.environments if config.eval else []):
        loc = ("body", "eval", "environments", index)
        if ref.algorithm is not None:
            problems.append(FieldProblem((*loc, "algorithm"), "an evaluation trains nothing; leave the field out"))
        if ref.group_rewards is not None:
            problems.append(FieldProblem((*loc, "group_rewards"), "an evaluation compares no rollouts; leave the field out"))
    if problems:
        refused = Invalid(problems[0].loc, problems[0].msg)
        refused.problems = problems
        raise refused


def _environment(config: RunConfig, ref: EnvironmentRef, loc: Location) -> Iterator[FieldProblem]:
    if ref.algorithm is not None:
        yield from _options(ref.algorithm, (*loc, "algorithm"))
    size, algorithm = config.group_size_of(ref), config.algorithm_of(ref).id
    if size == 1 and algorithm in GROUP_RELATIVE:
        field = (*loc, "group_size") if ref.group_size else ("body", "rollouts_per_example")
        yield FieldProblem(
            field,
            f"{algorithm} compares the rollouts of a group, and a group of one has none to compare; "
            f"take 2 or more, or one of {', '.join(ALONE)}",
        )
    if ref.group_rewards:
        yield from _group_rewards(ref, (*loc, "group_rewards"), size=size)
    if config.max_inflight_rollouts is not None and ref.group_size and config.max_inflight_rollouts < ref.group_size:
        message = f"{config.max_inflight_rollouts} is below the group_size {ref.group_size} of {ref.name or ref.id}"
        yield FieldProblem(("body", "max_inflight_rollouts"), message)


def _group_rewards(ref: EnvironmentRef, loc: Location, *, size: int) -> Iterator[FieldProblem]:
    names = [reward.name for reward in ref.group_rewards or ()]
    if len(set(names)) < len(names):
        yield FieldProblem(loc, "names one group reward twice")
    if ref.replay is not None:
        yield FieldProblem(loc, "a replayed rollout keeps the reward of its record; leave the field out")
    elif size == 1:
        yield FieldProblem(loc, "compares the rollouts of a group, and a group of one has none to compare")


def _options(algorithm: AlgorithmChoice, loc: Location) -> list[FieldProblem]:
    try:
        OPTIONS[algorithm.id].model_validate(algorithm.options)
    except ValidationError as error:
        return [replace(problem, loc=(*loc, "options", *problem.loc[1:])) for problem in validation_problems(error)]
    return []
