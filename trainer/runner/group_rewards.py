"""Rewards that see all rollouts of a group: methods `group_reward_<name>` of a task, called with the arguments that they name.

Knows how a task declares them and what they must return. Refuses to know what is done with the scores. The library scores one
rollout at a time; a method of this name means nothing to it, so that a package works with and without us.
"""

import inspect
import math
from typing import Any

import verifiers.v1 as vf

from trainer.contracts.rollouts import REWARDS_MAX, GroupMember

PREFIX = "group_reward_"
ARGUMENTS = frozenset({"task", "group"})
"""`task` is the row's data, `group` the list of `GroupMember`s."""
_SCORE_MAX = 1e6


def declared(task: vf.Task) -> list[str]:
    """Names of the group rewards of a task's class. Raises TypeError for one that could not be called."""
    methods = {name.removeprefix(PREFIX): getattr(task, name) for name in dir(type(task)) if name.startswith(PREFIX)}
    for name, method in methods.items():
        if not inspect.iscoroutinefunction(method):
            raise TypeError(f"{PREFIX}{name} must be declared with `async def`")
        if unknown := sorted(set(inspect.signature(method).parameters) - ARGUMENTS):
            raise TypeError(f"{PREFIX}{name} asks for {', '.join(unknown)}; it may ask for {', '.join(sorted(ARGUMENTS))}")
    if len(methods) > REWARDS_MAX:
        raise TypeError(f"there are {len(methods)} group rewards, at most {REWARDS_MAX} may be declared")
    return sorted(methods)


async def score(task: vf.Task, name: str, members: list[GroupMember]) -> list[float]:
    """What one group reward says of each member. Raises what the method raises, and ValueError for an answer that is no list of
    finite numbers, one per member."""
    method = getattr(task, PREFIX + name)
    offered: dict[str, Any] = {"task": task.data, "group": list(members)}
    answer = await method(**{argument: offered[argument] for argument in inspect.signature(method).parameters})
    scores = [float(value) for value in answer]
    if len(scores) != len(members):
        raise ValueError(f"{PREFIX}{name} gave {len(scores)} numbers for {len(members)} rollouts")
    if not all(math.isfinite(value) and abs(value) <= _SCORE_MAX for value in scores):
        raise ValueError(f"{PREFIX}{name} gave {scores}; each must be finite and at most {_SCORE_MAX:g}")
    return scores
