"""Publishes releases the way a push does, without HTTP."""

from controlplane.core.objects import store
from controlplane.hub import access, services
from controlplane.hub.models import Release, UploadKind, Visibility
from controlplane.hub.schemas import DeclareSource, DeclareUpload
from tests.factories.packages import Package, build_package
from tests.factories.teams import Member
from trainer.contracts.internal import ReleaseVerdict

GREEN = ReleaseVerdict(ok=True, summary="12 tasks, one rollout", log="ok\n", tasks_count=12, duration_s=1.5)
RED = ReleaseVerdict(
    ok=False, summary="ModuleNotFoundError: no module 'nope'", module="digit_sum.tasks", line=7, log="no\n", duration_s=0.5
)


def make_release(
    member: Member,
    package: Package | None = None,
    *,
    visibility: Visibility = Visibility.PRIVATE,
    verdict: ReleaseVerdict | None = GREEN,
) -> Release:
    """A release of the member's team; its check is over unless `verdict` is None."""
    package = package or build_package()
    environment, _ = services.get_or_create_environment(member.actor.team, package.name, visibility)
    wheel, _ = services.declare_upload(member.actor, environment, DeclareUpload.model_validate(package.wheel_declaration()))
    store().put(wheel.object_key, package.wheel)
    services.finalize_wheel(access.owned_upload(member.actor, environment.id, wheel.id, UploadKind.WHEEL))
    source, _ = services.declare_upload(member.actor, environment, DeclareSource.model_validate(package.source_declaration()))
    store().put(source.object_key, package.source)
    release = services.finalize_source(access.owned_upload(member.actor, environment.id, source.id, UploadKind.SOURCE))
    if verdict is not None:
        services.record_verdict(release.id, verdict)
    return access.release_by_id(release.id)
