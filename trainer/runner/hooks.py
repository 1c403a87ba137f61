"""Where a task defines what the library calls in each stage: the place to name when a call ends without a traceback.

Knows the library's task class and its marks. Refuses to run tenant code: it reads the class and calls nothing of it.
"""

import sys
from collections.abc import Iterator
from types import FunctionType

import verifiers.v1 as vf

from trainer.contracts.rollouts import TenantError
from trainer.runner.faults import at_place, is_tenant

_SCORES = ("reward", "metric")


def error_in_reward(task: vf.Task, name: str, message: str) -> TenantError:
    """About the value of one reward, whose function is named like it unless it returns keyed scores."""
    found = [function for function in _functions(task) if function.__name__ == name and "reward" in vars(function)]
    return _error("BadReward", message, found, name)


def error_in_stage(task: vf.Task, stage: str, message: str) -> TenantError:
    """About a stage that did not end. Several rewards run at once: then all are named, with the place of the first."""
    if stage == "scoring":
        found = [function for function in _functions(task) if any(mark in vars(function) for mark in _SCORES)]
    else:
        found = [function for function in _functions(task) if function.__name__ == stage]
    return _error("Timeout", message, found)


def _functions(task: vf.Task) -> Iterator[FunctionType]:
    """The tenant's methods of the task's class as they are inherited, in the order of the file."""
    seen: set[str] = set()
    for owner in type(task).__mro__:
        for name, value in vars(owner).items():
            if name not in seen and isinstance(value, FunctionType) and is_tenant(value.__code__.co_filename, sys.prefix):
                yield value
            seen.add(name)


def _error(kind: str, message: str, functions: list[FunctionType], name: str | None = None) -> TenantError:
    if not functions:
        return at_place(kind, message, None, function=name)
    code = functions[0].__code__
    names = ", ".join(function.__name__ for function in functions)
    return at_place(kind, message, (code.co_filename, code.co_firstlineno, names))
