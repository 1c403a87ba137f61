"""Who teaches and who generates in each environment of a run, and what cannot be asked for together.

Knows the configuration alone. Refuses to know which teachers exist: the control plane resolves their names.
"""

from typing import Literal, NamedTuple

from trainer.contracts.rollouts import RolloutSampling
from trainer.contracts.run_config import EnvironmentRef, RunConfig, Teacher

TAUGHT = frozenset({"opd", "sft"})
"""Algorithms that learn from a teacher."""
FED_BY_OTHERS = frozenset({"sft"})
"""Algorithms whose rollouts the policy does not make. Every other one compares the policy with what it sampled itself."""
SCORED = frozenset({"opd", "opsd"})
"""Algorithms that ask the engines for the log-probabilities of given tokens."""

Location = tuple[str | int, ...]


class Problem(NamedTuple):
    """`loc` is the field, from the top of the configuration."""

    loc: Location
    message: str


def teacher_of(config: RunConfig, ref: EnvironmentRef) -> Teacher | None:
    """Who teaches here; None where the algorithm learns from nobody, or from a record."""
    return (ref.teacher or config.teacher) if config.algorithm_of(ref).id in TAUGHT and not ref.replay else None


def generator_of(config: RunConfig, ref: EnvironmentRef) -> Literal["policy", "teacher", "record"]:
    if ref.replay:
        return "record"
    return ref.generator or ("teacher" if config.algorithm_of(ref).id in FED_BY_OTHERS else "policy")


def own_sampling(config: RunConfig) -> RolloutSampling:
    """How the policy samples, in training and in the run's evaluations."""
    return RolloutSampling(temperature=config.temperature, max_tokens=config.max_tokens)


def sampling_of(config: RunConfig, ref: EnvironmentRef) -> RolloutSampling:
    """How the generator of this environment samples."""
    teacher = teacher_of(config, ref) if generator_of(config, ref) == "teacher" else None
    given = teacher.sampling.model_dump(exclude_none=True) if teacher else {}
    return own_sampling(config).model_copy(update=given)


def teaching_problems(config: RunConfig) -> list[Problem]:
    """Everything about teachers and generators that contradicts the algorithms, each with its field and the way out."""
    problems = [problem for index, ref in enumerate(config.environments) for problem in _of_environment(config, index, ref)]
    for index, ref in enumerate(config.eval.environments if config.eval else []):
        for name in ("teacher", "generator", "replay"):
            if getattr(ref, name) is not None:
                loc = ("eval", "environments", index, name)
                problems.append(Problem(loc, "an evaluation is the policy's own and teaches nothing; leave the field out"))
    if config.teacher and not any(teacher_of(config, ref) is config.teacher for ref in config.environments):
        ids = ", ".join(sorted({config.algorithm_of(ref).id for ref in config.environments}))
        problems.append(Problem(("teacher",), f"nobody here learns from it ({ids}); choose opd or sft, or leave it out"))
    return problems


def _of_environment(config: RunConfig, index: int, ref: EnvironmentRef) -> list[Problem]:
    at: Location = ("environments", index)
    algorithm, problems = config.algorithm_of(ref).id, []
    if ref.replay:
        return _of_replay(at, algorithm, ref)
    if algorithm in TAUGHT and teacher_of(config, ref) is None:
        message = f"{algorithm} in environments.{index} needs a teacher other than the policy itself; name one under [teacher]"
        problems.append(Problem(("teacher",), message))
    if algorithm not in TAUGHT and ref.teacher is not None:
        problems.append(Problem((*at, "teacher"), f"{algorithm} learns from no teacher; choose opd or sft, or leave it out"))
    if generator_of(config, ref) == "teacher" and algorithm not in FED_BY_OTHERS:
        message = f"{algorithm} compares the policy with what it sampled itself; a frozen generator is for sft alone"
        problems.append(Problem((*at, "generator"), message))
    if generator_of(config, ref) == "policy" and algorithm in FED_BY_OTHERS:
        message = f"{algorithm} learns from what others said, not from the policy's own rollouts; leave the field out"
        problems.append(Problem((*at, "generator"), message))
    return problems


def _of_replay(at: Location, algorithm: str, ref: EnvironmentRef) -> list[Problem]:
    problems = []
    if algorithm not in FED_BY_OTHERS:
        message = f"{algorithm} compares the policy with what it samples itself; recorded rollouts are for sft alone"
        problems.append(Problem((*at, "replay"), message))
    for name in ("teacher", "generator"):
        if getattr(ref, name) is not None:
            problems.append(Problem((*at, name), "a record is replayed here, nobody is asked; leave one of the two out"))
    return problems
