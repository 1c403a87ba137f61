"""Adapter versions whose files nobody needs any more: which go, when, and which never do."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from controlplane.adapters import services
from controlplane.adapters.models import Adapter, Export
from controlplane.core.clock import now
from controlplane.core.tenancy import acting_as_system, acting_for
from controlplane.evals.models import EvalStatus, Evaluation
from controlplane.pools.models import Pool
from controlplane.runs.models import Checkpoint, Run
from tests.factories.adapters import make_adapter, report_of
from tests.factories.runs import make_evaluation, make_funded_member, make_pool, make_run
from trainer.contracts.adapters import MANIFEST_NAME, adapter_path
from trainer.contracts.events import RunState
from workers.artifacts import sweep_versions

pytestmark = pytest.mark.django_db
VERSIONS = (1, 2, 3, 4)


@pytest.fixture
def pool(tmp_path: Path) -> Pool:
    return make_pool(artifact_root=str(tmp_path))


@pytest.fixture
def member(pool):
    return make_funded_member()


@pytest.fixture
def run(member) -> Run:
    """A run of four steps that is over: its last version is kept, its checkpoints are those of steps 2 and 4."""
    run = make_run(member)
    for version in VERSIONS:
        make_adapter(member, run=run, version=version, keep=version == 4)
        folder = Path(run.pool.artifact_root) / adapter_path(run.id, version)
        folder.mkdir(parents=True)
        (folder / MANIFEST_NAME).write_bytes(b"{}")
    with acting_as_system():
        for step in (2, 4):
            Checkpoint.objects.create(run=run, team=run.team, step=step, path=f"c{step}", digest="d" * 64, size_bytes=1)
        Run.objects.filter(id=run.id).update(state=RunState.COMPLETED, finished_at=now())
    return run


def left(run: Run) -> list[int]:
    """Versions whose files are there after a sweep."""
    with acting_as_system():
        sweep_versions()
    return [version for version in VERSIONS if (Path(run.pool.artifact_root) / adapter_path(run.id, version)).exists()]


def first(run: Run) -> Adapter:
    with acting_as_system():
        return Adapter.objects.get(run=run, version=1)


def test_an_hour_after_its_run_what_nobody_can_reach_is_gone(run, shift_clock):
    assert left(run) == [1, 2, 3, 4]
    shift_clock(timedelta(hours=1, seconds=1))
    assert left(run) == [2, 4]
    assert first(run).removed_at is not None


def test_what_a_plan_keeps_no_longer_goes_as_well(member, run, shift_clock):
    with acting_as_system():
        Adapter.objects.filter(run=run).update(is_kept=True)
        Run.objects.filter(id=run.id).update(config=run.config | {"adapters": {"interval": 1, "keep_last": 1}})
    shift_clock(timedelta(hours=2))
    assert left(run) == [1, 2, 3, 4]
    with acting_as_system():
        services.record_version(Run.objects.get(id=run.id), report_of(run, 5))
    assert left(run) == [1, 2, 3, 4], "an hour passes from then on"
    shift_clock(timedelta(hours=4))
    assert left(run) == [2, 4]


def as_served(adapter: Adapter) -> dict[str, str]:
    """contracts.ServedModel"""
    return {"engine_name": adapter.engine_name, "adapter_path": adapter.path, "adapter_digest": adapter.digest}


def not_over(member, run: Run) -> None:
    Run.objects.filter(id=run.id).update(state=RunState.PAUSED)


def served(member, run: Run) -> None:
    Adapter.objects.filter(run=run).update(is_wanted=True)


def being_exported(member, run: Run) -> None:
    for adapter in Adapter.objects.filter(run=run):
        Export.objects.create(team_id=run.team_id, adapter=adapter, form="adapter")


def evaluated_and_not_done(member, run: Run) -> None:
    for adapter in Adapter.objects.filter(run=run):
        evaluation = make_evaluation(member)
        Evaluation.objects.filter(id=evaluation.id).update(status=EvalStatus.FAILED, served_model=as_served(adapter))


def playing_against_another_run(member, run: Run) -> None:
    for adapter in Adapter.objects.filter(run=run):
        Run.objects.filter(id=make_run(member).id).update(seats=[{"user-sim": as_served(adapter)}])


def teaching_another_run(member, run: Run) -> None:
    for adapter in Adapter.objects.filter(run=run):
        Run.objects.filter(id=make_run(member).id).update(teachers=[None, as_served(adapter)])


def begun_from(member, run: Run) -> None:
    for adapter in Adapter.objects.filter(run=run):
        Run.objects.filter(id=make_run(member).id).update(init_from=adapter.path)


def without_a_newer_checkpoint(member, run: Run) -> None:
    Checkpoint.objects.filter(run=run).delete()


USES = (
    not_over,
    served,
    being_exported,
    evaluated_and_not_done,
    playing_against_another_run,
    teaching_another_run,
    begun_from,
    without_a_newer_checkpoint,
)


@pytest.mark.parametrize("use", USES)
def test_what_something_may_still_read_stays(member, run, shift_clock, use: Callable[..., None]):
    with acting_for(member.team_id), acting_as_system():
        use(member, run)
    shift_clock(timedelta(hours=2))
    assert left(run) == [1, 2, 3, 4]
    assert first(run).removed_at is None


def test_a_version_whose_checkpoint_is_retired_goes_an_hour_later(run, shift_clock):
    with acting_as_system():
        Checkpoint.objects.filter(run=run, step=2).update(retired_at=now())
    shift_clock(timedelta(minutes=59))
    assert 2 in left(run)
    shift_clock(timedelta(hours=2))
    assert left(run) == [4]


def test_a_host_without_the_artifacts_removes_nothing_and_says_nothing_is_gone(run, shift_clock):
    shift_clock(timedelta(hours=2))
    with acting_as_system():
        Pool.objects.update(artifact_root="/nowhere")
    assert left(run) == [1, 2, 3, 4] and first(run).removed_at is None
