"""What a lease can be about, as the apps that own such work describe it to the internal API.

Knows the protocol and which app answers for which kind. Refuses to know runs, evaluations and releases themselves: each app
registers its own `Subject` when Django starts, so that `pools` imports none of them.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from controlplane.pools.bodies import StoredBody
from controlplane.pools.models import Lease
from trainer.contracts.internal import (
    AttemptSpec,
    CheckpointReport,
    EventBatch,
    Finish,
    Heartbeat,
    HeartbeatReply,
    RolloutBatch,
    VersionReport,
)


class Subject(Protocol):
    """Each method but `lock` runs inside one transaction in which the subject's row is locked and the lease proven live. `row` is
    what `lock` returned: the app's own model instance."""

    def lock(self, subject_id: str) -> Any | None:
        """Lock the subject's row; None when it is gone. Always before the lease's row, so that nobody deadlocks."""

    def attempt_spec(self, row: Any, lease: Lease) -> AttemptSpec:
        """What the holder is to do."""

    def release_ids(self, row: Any) -> list[str]:
        """Releases that the holder may bring up in sandboxes."""

    def billed_model(self, row: Any) -> str:
        """The base model whose prices hold for what the holder uses."""

    def on_heartbeat(self, row: Any, lease: Lease, beat: Heartbeat) -> HeartbeatReply:
        """What the holder shall do from here on."""

    def on_events(self, row: Any, lease: Lease, batch: EventBatch) -> int:
        """Record events; returns how many were new."""

    def on_rollouts(self, row: Any, lease: Lease, batch: RolloutBatch, body: StoredBody) -> int:
        """Record one step's rollouts, whose bodies are stored already; returns how many were new."""

    def on_version(self, row: Any, lease: Lease, report: VersionReport) -> None: ...

    def on_checkpoint(self, row: Any, lease: Lease, report: CheckpointReport) -> None: ...

    def on_finish(self, row: Any, lease: Lease, report: Finish) -> None:
        """Settle the subject. The caller releases the lease."""

    def on_lost(self, row: Any, lease: Lease) -> None:
        """The holder died or fell silent: requeue the subject, or fail it when it has been tried often enough."""


@dataclass(frozen=True)
class Held:
    """A proven lease, with the subject's locked row and who answers for it."""

    lease: Lease
    row: Any
    subject: Subject


_subjects: dict[str, Subject] = {}


def register(kind: str, subject: Subject) -> None:
    _subjects[kind] = subject


def subject_of(kind: str) -> Subject:
    return _subjects[kind]
