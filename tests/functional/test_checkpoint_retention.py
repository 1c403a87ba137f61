"""Checkpoints that a run's plan drops: which go, which never do, and what a killed sweep leaves behind."""

from pathlib import Path

import pytest

from controlplane.core.clock import now
from controlplane.core.tenancy import acting_as_system, acting_for
from controlplane.pools.models import Pool
from controlplane.runs.models import Checkpoint, Run
from controlplane.runs.reports import record_checkpoint
from controlplane.runs.services import create_run
from tests.factories.adapters import make_adapter
from tests.factories.runs import fresh, make_funded_member, make_pool, make_release, make_run, run_body
from trainer.contracts.adapters import MANIFEST_NAME, adapter_path, checkpoint_path
from trainer.contracts.events import RunState
from trainer.contracts.internal import CheckpointReport
from trainer.core import durable
from workers.artifacts import sweep_checkpoints

pytestmark = pytest.mark.django_db


@pytest.fixture
def pool(tmp_path: Path) -> Pool:
    return make_pool(artifact_root=str(tmp_path))


@pytest.fixture
def member(pool):
    return make_funded_member()


def run_with(member, keep: int, steps=(10, 20, 30)) -> Run:
    """A run that has committed checkpoints, with their files and those of the versions beside them."""
    run = make_run(member, checkpoints={"interval": 10, "keep_cloud": keep})
    for step in steps:
        make_adapter(member, run=run, version=step, keep=False)
        commit(run, step)
    return run


def commit(run: Run, step: int, digest: str = "d" * 64) -> None:
    for path in (checkpoint_path(run.id, step), adapter_path(run.id, step)):
        folder = Path(run.pool.artifact_root) / path
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "state.safetensors").write_bytes(b"x")
        (folder / MANIFEST_NAME).write_bytes(b"{}")
    with acting_as_system():
        record_checkpoint(
            fresh(run), CheckpointReport(step=step, path=checkpoint_path(run.id, step), digest=digest, size_bytes=1)
        )


def swept() -> int:
    with acting_as_system():
        return sweep_checkpoints()


def on_disk(run: Run) -> list[int]:
    folder = (Path(run.pool.artifact_root) / checkpoint_path(run.id, 0)).parent
    return sorted(int(path.name.removeprefix("step-")) for path in folder.iterdir())


def listed(client, run: Run) -> list[int]:
    return [row["step"] for row in client.get(f"/api/v1/rft/runs/{run.id}/checkpoints").json()["checkpoints"]]


def checkpoint_of(run: Run, step: int) -> Checkpoint:
    with acting_as_system():
        return Checkpoint.objects.get(run=run, step=step)


def begin_from(member, checkpoint: Checkpoint) -> Run:
    with acting_for(member.team_id):
        return create_run(actor=member.actor, body=run_body(make_release(member), checkpoint_id=checkpoint.id))


@pytest.mark.parametrize(("keep", "left"), [(-1, [10, 20, 30]), (2, [20, 30]), (1, [30]), (0, [30])])
def test_the_newest_stay_and_the_others_go_with_their_files(member, client_of, keep, left):
    run = run_with(member, keep)
    assert swept() == 3 - len(left) and swept() == 0
    assert on_disk(run) == listed(client_of(member), run) == left
    assert all((Path(run.pool.artifact_root) / adapter_path(run.id, step)).exists() for step in (10, 20, 30))


def test_deploying_or_starting_from_a_retired_one_is_refused_with_the_reason(member, client_of):
    run = run_with(member, 1)
    gone, client = checkpoint_of(run, 10), client_of(member)
    swept()
    deployed = client.post(f"/api/v1/rft/checkpoints/{gone.id}/deploy")
    started = client.post("/api/v1/rft/runs", run_body(make_release(member), checkpoint_id=gone.id))
    for answer in (deployed, started):
        assert (answer.status_code, answer.json()["code"]) == (409, "checkpoint_retired")
        assert "step 10" in answer.json()["detail"] and "keep_cloud" in answer.json()["detail"]


def test_what_a_run_that_is_not_over_begins_from_stays_until_it_is(member):
    run = run_with(member, 1)
    child = begin_from(member, checkpoint_of(run, 10))
    swept()
    assert on_disk(run) == [10, 30]
    with acting_as_system():
        Run.objects.filter(id=child.id).update(state=RunState.COMPLETED)
    swept()
    assert on_disk(run) == [30]


def test_a_run_that_is_made_while_its_checkpoint_is_retired_is_refused(member, client_of, monkeypatch):
    """The sweep comes between the plan and the insertion."""
    run = run_with(member, 1)
    checkpoint = checkpoint_of(run, 10)

    def sweeping(_):
        Checkpoint.objects.filter(run=run, step=10).update(retired_at=now())

    monkeypatch.setattr("controlplane.runs.services.hold_datasets", sweeping)
    answer = client_of(member).post("/api/v1/rft/runs", run_body(make_release(member), checkpoint_id=checkpoint.id))
    assert (answer.status_code, answer.json()["code"]) == (409, "checkpoint_retired")
    with acting_as_system():
        assert not Run.objects.exclude(id=run.id).exists()


@pytest.mark.parametrize("killed_in", ["unlink", "rmtree"])
def test_a_sweep_killed_on_its_way_is_finished_by_the_next(member, monkeypatch, killed_in):
    run = run_with(member, 1, steps=(10, 20))
    folder = Path(run.pool.artifact_root) / checkpoint_path(run.id, 10)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(*((Path, "unlink") if killed_in == "unlink" else (durable.shutil, "rmtree")), killed)
        swept()
    assert (folder / MANIFEST_NAME).exists() is (killed_in == "unlink") and (folder / "state.safetensors").exists()
    assert checkpoint_of(run, 10).removed_at is None
    assert swept() == 1 and on_disk(run) == [20]
    assert checkpoint_of(run, 10).removed_at is not None


def killed(*_arguments, **_options):
    raise KeyboardInterrupt


def test_a_host_without_the_artifacts_removes_nothing_and_says_nothing_is_gone(member):
    run = run_with(member, 1)
    with acting_as_system():
        Pool.objects.update(artifact_root="/nowhere")
    assert swept() == 0 and checkpoint_of(run, 10).removed_at is None


def test_a_step_that_is_committed_again_is_there_again(member, client_of):
    run = run_with(member, 1)
    swept()
    commit(run, 10, digest="e" * 64)
    assert listed(client_of(member), run) == [10, 30]
