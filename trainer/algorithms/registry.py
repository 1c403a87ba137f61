"""Algorithms by id. A new one is one line here, its id and options in the contract, one file and its test."""

from typing import Any

from pydantic import ValidationError

from trainer.algorithms.echo import Echo
from trainer.algorithms.grpo import Grpo
from trainer.algorithms.max_rl import MaxRl
from trainer.algorithms.opd import Opd
from trainer.algorithms.opsd import Opsd
from trainer.algorithms.protocol import Algorithm, Reference, UnknownAlgorithm
from trainer.algorithms.rae import Rae
from trainer.algorithms.sft import Sft
from trainer.contracts.algorithms import OPTIONS
from trainer.contracts.run_config import AlgorithmChoice

ALGORITHMS: dict[str, type[Algorithm[Any]]] = {
    "grpo": Grpo,
    "max_rl": MaxRl,
    "rae": Rae,
    "echo": Echo,
    "opd": Opd,
    "opsd": Opsd,
    "sft": Sft,
}


def algorithm_for(config: AlgorithmChoice, reference: Reference | None = None) -> Algorithm[Any]:
    """A fresh instance of the configured algorithm. Raises UnknownAlgorithm naming the option that is wrong."""
    try:
        options = OPTIONS[config.id].model_validate(config.options)
    except ValidationError as problem:
        first = problem.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise UnknownAlgorithm(f"algorithm.options.{field}: {first['msg']}") from None
    return ALGORITHMS[config.id](options, reference)
