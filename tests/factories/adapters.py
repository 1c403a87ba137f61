"""Makes adapters the way a run's report does, and engines' files for them."""

import hashlib
from itertools import count

from controlplane.adapters import exports, services
from controlplane.adapters.models import Adapter, Export
from controlplane.core.objects import store
from controlplane.core.tenancy import acting_as_system, acting_for
from controlplane.runs.models import Checkpoint, Run
from tests.factories.fake_engine import FakeEngine
from tests.factories.runs import fresh, make_run
from tests.factories.teams import Member
from trainer.contracts.adapters import WEIGHTS_NAME, FileEntry, adapter_path
from trainer.contracts.internal import VersionReport

_numbers = count(1)


def report_of(run: Run, version: int, *, keep: bool = True, digest: str = "") -> VersionReport:
    return VersionReport(
        version=version,
        step=version,
        adapter_digest=digest or f"{next(_numbers):064x}",
        path=adapter_path(run.pk, version),
        size_bytes=1_000,
        keep=keep,
    )


def make_adapter(member: Member, *, run: Run | None = None, version: int = 1, keep: bool = True) -> Adapter:
    """A version of a run, reported by its holder."""
    run = run or make_run(member)
    with acting_as_system():
        return services.record_version(run, report_of(run, version, keep=keep))


def make_checkpoint(member: Member, *, run: Run | None = None, step: int = 10) -> Checkpoint:
    """A committed checkpoint, with the version of its step that the plan did not keep."""
    run = run or make_run(member)
    make_adapter(member, run=run, version=step, keep=False)
    with acting_for(member.team_id):
        return Checkpoint.objects.create(run=run, team=run.team, step=step, path="p", digest="d" * 64, size_bytes=1, position={})


def make_export(adapter: Adapter, content: bytes = b"weights") -> Export:
    """An export of one file, sent and finished the way its holder does."""
    entry = FileEntry(sha256=hashlib.sha256(content).hexdigest(), size_bytes=len(content))
    with acting_as_system():
        export = Export.objects.create(team_id=adapter.team_id, adapter=adapter, form="adapter")
        store().put(exports.expect_part(export, WEIGHTS_NAME, entry, 0), content)
        exports.record_files(export, {WEIGHTS_NAME: entry})
    return export


def make_deployed(member: Member, engine: FakeEngine, **fields: object) -> Adapter:
    """An adapter whose deployment has been settled: the engine holds it, and the row says so."""
    adapter = make_adapter(member, **fields)  # type: ignore[arg-type]
    engine.files[f"/artifacts/{adapter.path}"] = adapter.digest
    engine.loaded[adapter.engine_name] = adapter.digest
    with acting_for(member.team_id):
        wished = services.deploy_adapter(member.actor, adapter.pk)
    with acting_as_system():
        services.record_deployed(wished.pk, wished.generation, digest=adapter.digest)
    return fresh(adapter)
