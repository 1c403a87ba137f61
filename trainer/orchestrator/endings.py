"""How an attempt ends: exceptions that carry the outcome, so that any task of the process can end all of it.

Knows the ways to end. Refuses to know who is told: `__main__` turns one of these into `finish` or into silence.
"""

from typing import Any, Literal

from trainer.contracts.events import FailureCode

Outcome = Literal["completed", "failed", "stopped", "paused"]


class AttemptOver(Exception):
    """The attempt ends with this outcome; `message` says to the run's owner what happened and what to do."""

    def __init__(self, outcome: Outcome, message: str, code: FailureCode | None = None, detail: dict[str, Any] | None = None):
        super().__init__(message)
        self.outcome: Outcome = outcome
        self.message = message
        self.code = code
        self.detail = detail or {}


class StaleLease(Exception):
    """A newer attempt owns the subject, or the lease has surely run out: stop at once and write nothing more anywhere."""


def failed(code: FailureCode, message: str, **detail: Any) -> AttemptOver:
    return AttemptOver("failed", message, code, detail)


def first_ending(error: BaseException) -> BaseException:
    """The exception that decides, out of a tree of groups: a lost lease before everything, then an outcome, then any error."""
    leaves = list(_leaves(error))
    for kind in (StaleLease, AttemptOver):
        for leaf in leaves:
            if isinstance(leaf, kind):
                return leaf
    return leaves[0]


def _leaves(error: BaseException):
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _leaves(part)
    else:
        yield error
