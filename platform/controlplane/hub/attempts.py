"""What the internal API asks about attempts on release checks (`pools.subjects.Subject`), and how such an attempt begins.

A check is leased work like a run: an orchestrator of kind `release` brings the release up in a sandbox and reports a verdict. It
trains nothing, serves nothing and is not billed.
"""

from django.db import transaction

from controlplane.core.errors import Conflict
from controlplane.core.tenancy import acting_as_system
from controlplane.hub import access, services
from controlplane.hub.models import SETTLED_BADGES, Badge, Release
from controlplane.hub.queries import release_spec
from controlplane.pools.bodies import StoredBody
from controlplane.pools.errors import LeaseTaken
from controlplane.pools.models import Lease
from controlplane.pools.orders import orders_of
from controlplane.pools.queries import base_models_served
from controlplane.pools.services import LEASE_S, GrantedAttempt, grant_lease
from trainer.contracts.catalogue import BaseModelSpec, load_catalogue
from trainer.contracts.internal import (
    AttemptSpec,
    CheckpointReport,
    EventBatch,
    Finish,
    Heartbeat,
    HeartbeatReply,
    ReleaseVerdict,
    RolloutBatch,
    VersionReport,
)

LOST_CHECKS_MAX = 3


def begin_check(release_id: str) -> GrantedAttempt | None:
    """Lease the check of a release and show it as building. None when it has a verdict, is being checked, or is gone."""
    with acting_as_system(), transaction.atomic():
        release = access.lock_release(release_id)
        if release is None or release.badge in SETTLED_BADGES:
            return None
        try:
            granted = grant_lease(subject_kind="release", subject_id=release.id, team_id=release.team_id, pool=None)
        except LeaseTaken:
            return None
        Release.objects.filter(id=release.id).update(badge=Badge.BUILDING)
        return granted


def checking_model() -> BaseModelSpec:
    """The base model whose tokenizer and renderer a check uses. Its canned answers need no weights: any model does whose
    tokenizer is at hand, as it is for those that a pool serves."""
    catalogue = load_catalogue()
    return catalogue[min(base_models_served() & catalogue.keys() or catalogue)]


class ReleaseSubject:
    """A release as something that is leased for its check."""

    def lock(self, subject_id: str) -> Release | None:
        return access.lock_release(subject_id)

    def attempt_spec(self, row: Release, lease: Lease) -> AttemptSpec:
        return AttemptSpec(
            **orders_of(lease),
            base_model=checking_model(),
            releases=[release_spec(row)],
        )

    def release_ids(self, row: Release) -> list[str]:
        return [row.id]

    def billed_model(self, row: Release) -> str:
        return checking_model().id

    def on_heartbeat(self, row: Release, lease: Lease, beat: Heartbeat) -> HeartbeatReply:
        return HeartbeatReply(desired="run", lease_s=LEASE_S)

    def on_events(self, row: Release, lease: Lease, batch: EventBatch) -> int:
        """A check has no event log: its verdict carries the log."""
        return len(batch.events)

    def on_rollouts(self, row: Release, lease: Lease, batch: RolloutBatch, body: StoredBody) -> int:
        return 0

    def on_version(self, row: Release, lease: Lease, report: VersionReport) -> None:
        raise Conflict("A release check makes no adapter versions.")

    def on_checkpoint(self, row: Release, lease: Lease, report: CheckpointReport) -> None:
        raise Conflict("A release check makes no checkpoints.")

    def on_finish(self, row: Release, lease: Lease, report: Finish) -> None:
        services.record_verdict(row.id, report.verdict or _without_verdict(report.message))

    def on_lost(self, row: Release, lease: Lease) -> None:
        """Try again; a release whose checks keep dying is what kills them."""
        if row.lost_checks + 1 >= LOST_CHECKS_MAX:
            services.record_verdict(row.id, _without_verdict(f"the check ended {LOST_CHECKS_MAX} times without a verdict"))
            return
        services.requeue_check(row)


def _without_verdict(message: str) -> ReleaseVerdict:
    return ReleaseVerdict(ok=False, summary=message or "the check ended without a verdict", duration_s=0.0)
