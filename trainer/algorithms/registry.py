"""Algorithms by id. Knows which there are; a new one is one line here, its id in the contract, one file and its test."""

from pydantic import ValidationError

from trainer.algorithms.grpo import Grpo
from trainer.algorithms.protocol import Algorithm, UnknownAlgorithm
from trainer.contracts.run_config import AlgorithmConfig

ALGORITHMS = {algorithm.id: algorithm for algorithm in (Grpo,)}


def algorithm_for(config: AlgorithmConfig) -> Algorithm:
    """The configured algorithm. Raises UnknownAlgorithm naming the option that is wrong."""
    kind = ALGORITHMS[config.id]
    try:
        options = kind.Options.model_validate(config.options)
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise UnknownAlgorithm(f"algorithm.options.{field}: {first['msg']}") from None
    return kind(options)
