"""Options of each algorithm, so that a run with a wrong one is refused when it is asked for and not when it starts.

Knows names, types and defaults. What they do stands in `trainer/algorithms`.
"""

from typing import Annotated

from pydantic import Field

from trainer.contracts.base import Wire

HINT_PLACE = "{hint}"


class GrpoOptions(Wire):
    divide_by_std: bool = False
    length_penalty: Annotated[float, Field(ge=0, le=100)] = 0.0


class MaxRlOptions(Wire):
    pass


class RaeOptions(Wire):
    decay: Annotated[float, Field(ge=0, lt=1)] = 0.95


class EchoOptions(GrpoOptions):
    alpha: Annotated[float, Field(gt=0, le=10)] = 0.1


class OpdOptions(Wire):
    pass


class OpsdOptions(Wire):
    hint: Annotated[str, Field(min_length=1, max_length=8_000)] = HINT_PLACE
    """Text before the conversation as the reference reads it; `{hint}` stands for the task's own. Special tokens of the chat
    template may be written out."""


class SftOptions(Wire):
    min_reward: float | None = None
    """Learn from rollouts with at least this reward alone."""


OPTIONS: dict[str, type[Wire]] = {
    "grpo": GrpoOptions,
    "max_rl": MaxRlOptions,
    "rae": RaeOptions,
    "echo": EchoOptions,
    "opd": OpdOptions,
    "opsd": OpsdOptions,
    "sft": SftOptions,
}

GROUP_RELATIVE = frozenset({"grpo", "max_rl", "echo"})
"""Those that compare a rollout with the others of its group, and learn nothing from a group of one."""
