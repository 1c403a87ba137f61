"""Forks over HTTP: what they take over, what they may not change, whose they are, and what their holder is told."""

import pytest

from controlplane.core.tenancy import acting_as_system, acting_for
from controlplane.pools.services import proven
from controlplane.runs.models import Checkpoint, Run
from controlplane.runs.reports import record_checkpoint
from controlplane.runs.services import fork_run
from tests.factories.adapters import make_adapter
from tests.factories.runs import fresh, lease_run, make_funded_member, make_pool, make_run
from tests.factories.teams import make_member
from trainer.contracts.adapters import checkpoint_path
from trainer.contracts.internal import AttemptSpec, CheckpointReport, RunPosition

pytestmark = pytest.mark.django_db
POSITION = RunPosition(cursors={"sums": 40}, dataset_cursors={"rows": 7}, algorithm_state={"sums": {"mean": 0.5}})


@pytest.fixture
def pool():
    return make_pool()


@pytest.fixture
def member(pool):
    return make_funded_member()


@pytest.fixture
def parent(member) -> Run:
    return make_run(member, max_steps=40, learning_rate=3e-4, secrets=[{"key": "TOKEN", "value": "s3cret"}])


def committed(member, run: Run, step: int = 20, position: RunPosition | None = POSITION) -> Checkpoint:
    make_adapter(member, run=run, version=step, keep=False)
    path = checkpoint_path(run.id, step)
    with acting_as_system():
        record_checkpoint(fresh(run), CheckpointReport(step=step, path=path, digest="d" * 64, size_bytes=1, position=position))
        return Checkpoint.objects.get(run=run, step=step)


def forked(client, checkpoint: Checkpoint, **changes):
    return client.post(f"/api/v1/rft/checkpoints/{checkpoint.id}/fork", changes)


def refused_fields(answer) -> list[str]:
    assert answer.status_code == 422, answer.content
    return [".".join(map(str, problem["loc"][1:])) for problem in answer.json()["detail"]]


def test_a_fork_goes_on_at_the_step_with_the_configuration_and_the_changes(member, parent, client_of, pool):
    checkpoint = committed(member, parent)
    answer = forked(client_of(member), checkpoint, learning_rate=1e-5, max_steps=60, optimizer={"warmup_steps": 0})
    assert answer.status_code == 200, answer.content
    run = answer.json()["run"]
    assert run["forkedFrom"] == {"checkpointId": checkpoint.id, "runId": parent.id, "step": 20}
    assert (run["step"], run["segment"], run["name"]) == (20, 1, f"{parent.name}-fork")
    config = run["effectiveConfig"]
    assert (config["learning_rate"], config["max_steps"], config["optimizer"]["warmup_steps"]) == (1e-5, 60, 0)
    assert config["environments"] == parent.config["environments"] and config["seed"] == parent.config["seed"]
    assert client_of(member).get(f"/api/v1/rft/runs/{run['id']}").json()["run"]["forkedFrom"]["step"] == 20
    assert client_of(member).get(f"/api/v1/rft/runs/{parent.id}").json()["run"]["forkedFrom"] is None


def test_its_holder_is_told_where_to_begin_and_the_secrets(member, parent, pool):
    checkpoint = committed(member, parent)
    with acting_for(member.team_id):
        child = fork_run(actor=member.actor, checkpoint_id=checkpoint.id, changes={})
    lease_run(pool)
    granted = lease_run(pool)
    with acting_as_system(), proven(granted.token) as held:
        spec: AttemptSpec = held.subject.attempt_spec(held.row, held.lease)
    assert spec.subject_id == child.id and spec.init_from == checkpoint.path
    assert (spec.position, spec.resume_step, spec.secrets) == (POSITION, 20, {"TOKEN": "s3cret"})


def test_what_the_moments_are_about_cannot_be_changed_and_each_field_is_named(member, parent, client_of):
    changes = {"lora_rank": 4, "lora_alpha": 8, "algorithm": {"id": "max_rl"}}
    assert set(refused_fields(forked(client_of(member), committed(member, parent), **changes))) >= {"lora_rank"}
    changes.pop("lora_rank")
    named = refused_fields(forked(client_of(member), committed(member, parent, 21), max_steps=21, **changes))
    assert named == ["lora_alpha", "algorithm.id", "max_steps"]
    assert refused_fields(forked(client_of(member), committed(member, parent, 22), surprise=1)) == ["surprise"]


def test_another_checkpoint_than_the_addresss_is_refused_by_its_field(member, parent, client_of):
    checkpoint, other = committed(member, parent), committed(member, parent, step=30)
    assert refused_fields(forked(client_of(member), checkpoint, checkpoint_id=other.id)) == ["checkpoint_id"]
    assert forked(client_of(member), checkpoint, checkpoint_id=checkpoint.id).status_code == 200


def test_a_checkpoint_that_does_not_tell_its_place_is_refused_with_the_way_out(member, parent, client_of):
    answer = forked(client_of(member), committed(member, parent, position=None))
    assert answer.status_code == 409 and "checkpoint_id" in answer.json()["hint"]


def test_another_teams_checkpoint_looks_like_none(member, parent, client_of):
    checkpoint, stranger = committed(member, parent), client_of(make_member())
    assert forked(stranger, checkpoint).status_code == 404
