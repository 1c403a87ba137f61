"""The states of an evaluation and which may follow which. Pure. A hosted one goes back to PENDING when its holder is lost, and
when its owner lets one that ended early go on."""

from controlplane.evals.models import EvalStatus

TERMINAL = frozenset({EvalStatus.COMPLETED, EvalStatus.FAILED, EvalStatus.TIMEOUT, EvalStatus.CANCELLED})
RESUMABLE = TERMINAL - {EvalStatus.COMPLETED}
TRANSITIONS: dict[EvalStatus, frozenset[EvalStatus]] = {
    EvalStatus.PENDING: frozenset({EvalStatus.RUNNING, EvalStatus.PROCESSING, *TERMINAL}),
    EvalStatus.RUNNING: frozenset({EvalStatus.PENDING, EvalStatus.PROCESSING, *TERMINAL}),
    EvalStatus.PROCESSING: TERMINAL,
    EvalStatus.COMPLETED: frozenset(),
    **{status: frozenset({EvalStatus.PENDING}) for status in RESUMABLE},
}


def may_follow(before: EvalStatus, after: EvalStatus) -> bool:
    return after in TRANSITIONS[before]


def is_resumable(status: str) -> bool:
    return status in RESUMABLE


def is_terminal(status: str) -> bool:
    return status in TERMINAL
