"""Reward functions under watch. The library logs a reward that raises and goes on with 0.0, as if that had been earned.

Knows rubrics and their functions. Refuses to weigh: the library adds up. Each function is wrapped once, at load; what goes wrong
in it is kept for the rollout that it scores.
"""

import functools
import inspect
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from trainer.contracts.rollouts import TenantError
from trainer.runner.faults import at_place, from_exception, is_tenant
from trainer.runner.limits import NAME_CHARS, SCORE_MAX, is_score
from trainer.runner.older.refusals import leaves

_MARK = "__rootstock_guarded__"

Function = Callable[..., Any]


@dataclass(slots=True)
class Scoring:
    """Of one rollout. `running` is the function at work."""

    errors: list[TenantError] = field(default_factory=list)
    failed: set[str] = field(default_factory=set)
    running: Function | None = None


_scoring: ContextVar[Scoring | None] = ContextVar("scoring", default=None)


@contextmanager
def watched(scoring: Scoring) -> Iterator[None]:
    """Whatever reward functions do inside is written down in `scoring`."""
    token = _scoring.set(scoring)
    try:
        yield
    finally:
        _scoring.reset(token)


def guard(rubric: Any) -> None:
    """Wrap every function of a rubric, once."""
    for leaf in leaves(rubric):
        leaf.funcs = [function if hasattr(function, _MARK) else _guarded(function) for function in leaf.funcs]


def weights(rubric: Any) -> dict[str, float]:
    """By function; one without weight is a metric."""
    return {
        function.__name__: weight for leaf in leaves(rubric) for function, weight in zip(leaf.funcs, leaf.weights, strict=False)
    }


def error_in(function: Function | None, kind: str, message: str) -> TenantError:
    """About a function that gave no traceback: with the place where it is defined."""
    code = getattr(inspect.unwrap(function), "__code__", None) if function else None
    if code is None or not is_tenant(code.co_filename, sys.prefix):
        return at_place(kind, message, None, function=getattr(function, "__name__", None))
    return at_place(kind, message, (code.co_filename, code.co_firstlineno, code.co_name))


def _guarded(function: Function) -> Function:
    @functools.wraps(function)
    async def call(*arguments: Any, **named: Any) -> float:
        scoring = _scoring.get() or Scoring()
        scoring.running = call
        try:
            value = function(*arguments, **named)
            score = float(await value if inspect.isawaitable(value) else value)
        except Exception as error:
            _note(scoring, call, from_exception(error))
            raise
        if not is_score(score):
            what = score if not math.isfinite(score) else f"{score:g}, beyond {SCORE_MAX:g}"
            _note(scoring, call, error_in(call, "BadReward", f"reward {call.__name__!r} is {what}"))
        scoring.running = None
        return score

    setattr(call, _MARK, True)
    return call


def _note(scoring: Scoring, function: Function, error: TenantError) -> None:
    scoring.errors.append(error if error.function else error.model_copy(update={"function": function.__name__[:NAME_CHARS]}))
    scoring.failed.add(function.__name__)
