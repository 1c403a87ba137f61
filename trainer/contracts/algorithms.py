"""Options of each algorithm, so that a run with a wrong one is refused when it is asked for and not when it starts.

Knows names, types and defaults. What they do stands in `trainer/algorithms`.
"""

from typing import Annotated

from pydantic import Field

from trainer.contracts.base import Wire


class GrpoOptions(Wire):
    divide_by_std: bool = False
    length_penalty: Annotated[float, Field(ge=0, le=100)] = 0.0


class MaxRlOptions(Wire):
    pass


class RaeOptions(Wire):
    decay: Annotated[float, Field(ge=0, lt=1)] = 0.95


class EchoOptions(GrpoOptions):
    alpha: Annotated[float, Field(gt=0, le=10)] = 0.1


OPTIONS: dict[str, type[Wire]] = {
    "grpo": GrpoOptions,
    "max_rl": MaxRlOptions,
    "rae": RaeOptions,
    "echo": EchoOptions,
}

GROUP_RELATIVE = frozenset({"grpo", "max_rl", "echo"})
"""Those that compare a rollout with the others of its group, and learn nothing from a group of one."""
