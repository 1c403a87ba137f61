"""The states of a run and which may follow which. Pure: a table and two functions, shared by services and their test."""

from enum import StrEnum

from trainer.contracts.events import TERMINAL_STATES, RunState


class RunKind(StrEnum):
    """Where a run is trained, as spelled on the wire."""

    SHARED = "SHARED_RFT_HOSTED"
    EXTERNAL = "EXTERNAL"
    """Elsewhere, by a trainer that reports here (`ingest`). It has no lease, no pool and no bill."""


TRANSITIONS: dict[RunState, frozenset[RunState]] = {
    RunState.QUEUED: frozenset({RunState.PENDING, RunState.PAUSED, RunState.STOPPED, RunState.FAILED}),
    RunState.PENDING: frozenset(
        {
            RunState.RUNNING,
            RunState.QUEUED,
            RunState.PAUSING,
            RunState.PAUSED,
            RunState.COMPLETED,
            RunState.FAILED,
            RunState.STOPPED,
        }
    ),
    RunState.RUNNING: frozenset(
        {RunState.QUEUED, RunState.PAUSING, RunState.PAUSED, RunState.COMPLETED, RunState.FAILED, RunState.STOPPED}
    ),
    RunState.PAUSING: frozenset({RunState.PAUSED, RunState.QUEUED, RunState.COMPLETED, RunState.FAILED, RunState.STOPPED}),
    RunState.PAUSED: frozenset({RunState.QUEUED, RunState.STOPPED}),
    # A user's restart opens a new segment; nothing else leaves a terminal state, and nothing leaves COMPLETED.
    RunState.FAILED: frozenset({RunState.QUEUED}),
    RunState.STOPPED: frozenset({RunState.QUEUED}),
    RunState.COMPLETED: frozenset(),
}

LEASED_STATES = frozenset({RunState.PENDING, RunState.RUNNING, RunState.PAUSING})
"""A live lease belongs to exactly these states; the reconciler repairs the rest."""


class IllegalTransition(RuntimeError):
    """A programming error: services check what a user may ask for before they move a run."""


def may_follow(before: RunState, after: RunState) -> bool:
    return after in TRANSITIONS[before]


def check_transition(before: RunState, after: RunState) -> None:
    if not may_follow(before, after):
        raise IllegalTransition(f"{before} -> {after}")


def is_terminal(state: RunState) -> bool:
    return state in TERMINAL_STATES
