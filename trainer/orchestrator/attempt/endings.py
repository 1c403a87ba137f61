"""How an attempt ends: exceptions that carry the outcome, so that any task of the process can end all of it.

Knows the ways to end. Refuses to know who is told: `__main__` turns one of these into `finish` or into silence.
"""

import logging
from collections.abc import Awaitable, Iterator
from typing import Any, Literal

from trainer.contracts.events import FailureCode

logger = logging.getLogger("rootstock.orchestrator")
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


async def ending_of(work: Awaitable[None]) -> AttemptOver:
    """How the work ended; an error that nobody foresaw is a failure of ours, with its own words. Raises StaleLease, and what
    cancels the process."""
    try:
        await work
    except BaseException as error:
        cause = first_ending(error)
        if isinstance(cause, AttemptOver):
            return cause
        if isinstance(cause, StaleLease) or not isinstance(cause, Exception):
            raise cause from error
        logger.error("the attempt ends by an error", exc_info=cause)
        return failed(FailureCode.INTERNAL, f"{type(cause).__name__}: {cause}")
    return failed(FailureCode.INTERNAL, "the work ended without saying why")


def first_ending(error: BaseException) -> BaseException:
    """The exception that decides, out of a tree of groups: a lost lease before everything, then an outcome, then any error."""
    leaves = list(_leaves(error))
    for kind in (StaleLease, AttemptOver):
        for leaf in leaves:
            if isinstance(leaf, kind):
                return leaf
    return leaves[0]


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _leaves(part)
    else:
        yield error
