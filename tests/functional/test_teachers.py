"""Teachers at `POST /rft/runs`: which names resolve, what is refused by which field, and what the holder of the run is told."""

import base64
import hashlib
import json
from datetime import UTC, datetime

import pytest
import zstandard
from django.test import override_settings

from controlplane.core.tenancy import acting_as_system
from controlplane.pools.models import Lease
from controlplane.runs.attempts import RunSubject
from controlplane.runs.models import Run
from tests.factories.adapters import make_adapter, make_checkpoint
from tests.factories.runs import (
    MODEL,
    fresh,
    holder_client,
    lease_run,
    make_funded_member,
    make_pool,
    make_release,
    make_run,
    run_body,
)

pytestmark = pytest.mark.django_db
RUNS = "/api/v1/rft/runs"


@pytest.fixture
def pool():
    return make_pool()


@pytest.fixture
def ann(pool):
    return make_funded_member("ann-lab")


@pytest.fixture
def post(ann, client_of):
    client, release = client_of(ann), make_release(ann, "rules")
    return lambda **fields: client.post(RUNS, run_body(release, **fields))


@pytest.fixture
def expert(ann):
    return make_adapter(ann, run=make_run(ann, name="expert"), version=40)


def refused(answer) -> list[tuple[str, str]]:
    assert answer.status_code == 422, answer.content
    return [(".".join(map(str, problem["loc"])), problem["msg"]) for problem in answer.json()["detail"]]


def row_of(answer) -> Run:
    assert answer.status_code == 200, answer.content
    with acting_as_system():
        return Run.objects.get(id=answer.json()["run"]["id"])


def teacher(name: str) -> dict:
    return {"model": {"name": name}}


def test_every_spelling_of_an_own_adapter_teaches(post, expert, ann):
    by_step = row_of(post(algorithm={"id": "opd"}, teacher=teacher("expert@40")))
    by_id = row_of(post(algorithm={"id": "opd"}, teacher=teacher(f"{MODEL}:{expert.id}")))
    checkpoint = make_checkpoint(ann, step=10)
    by_checkpoint = row_of(post(algorithm={"id": "opd"}, teacher={"checkpoint_id": checkpoint.id}))
    assert (
        by_step.teachers
        == by_id.teachers
        == [{"engine_name": f"{expert.run_id}.v40", "adapter_path": expert.path, "adapter_digest": expert.digest}]
    )
    assert by_checkpoint.teachers[0]["engine_name"] == f"{checkpoint.run_id}.v10"


def test_the_public_clients_spelling_of_distillation_is_served(post, expert):
    answer = post(loss="sft", teacher=teacher("expert@40") | {"client": None, "sampling": {"max_tokens": 32}})
    run = answer.json()["run"]
    assert (run["loss"], run["teacher"]["model"], run["effectiveConfig"]["algorithm"]["id"]) == (
        "sft",
        {"name": "expert@40"},
        "sft",
    )
    assert row_of(answer).teachers[0]["engine_name"] == f"{expert.run_id}.v40"


def test_who_holds_the_run_is_told_one_teacher_an_environment(post, ann, expert, pool):
    environments = [
        {"id": make_release(ann, "sums").environment.slug, "teacher": teacher("expert@40")},
        {"id": make_release(ann, "maxes").environment.slug, "teacher": teacher(MODEL)},
    ]
    run = row_of(post(environments=environments, algorithm={"id": "opd"}))
    with acting_as_system():
        Run.objects.exclude(id=run.id).update(state="STOPPED")
    lease = lease_run(pool).lease
    with acting_as_system():
        spec = RunSubject().attempt_spec(fresh(run), lease)
    assert [one.engine_name for one in spec.teachers] == [f"{expert.run_id}.v40", MODEL]


def test_a_run_without_a_teacher_has_none(post):
    assert row_of(post()).teachers == []


@pytest.mark.parametrize("name", ["nobody", "tiny:cxxxxxxxxxxxxxxxxxxxxxxxx", "expert@7"])
def test_an_unknown_teacher_is_named_by_field(post, expert, name):
    ((field, message),) = refused(post(algorithm={"id": "opd"}, teacher=teacher(name)))
    assert field == "body.teacher.model.name" and name in message


def test_another_teams_adapter_teaches_nobody(post, client_of):
    stranger = make_funded_member()
    adapter = make_adapter(stranger, version=40)
    ((field, _),) = refused(post(algorithm={"id": "opd"}, teacher=teacher(f"{MODEL}:{adapter.id}")))
    checkpoint = make_checkpoint(stranger)
    assert field == "body.teacher.model.name"
    assert post(algorithm={"id": "opd"}, teacher={"checkpoint_id": checkpoint.id}).status_code == 404


def test_a_teacher_of_another_base_model_is_refused_by_field(post):
    ((field, message),) = refused(post(algorithm={"id": "opd"}, teacher=teacher("smollm2")))
    assert field == "body.teacher.model.name" and "token ids" in message


def test_a_policy_that_would_teach_itself_is_refused(post, ann):
    own = teacher(MODEL)
    ((field, message),) = refused(post(algorithm={"id": "opd"}, teacher=own))
    assert field == "body.teacher" and "nothing to learn" in message
    checkpoint = make_checkpoint(ann, step=10)
    same = post(algorithm={"id": "opd"}, teacher={"checkpoint_id": checkpoint.id}, checkpoint_id=checkpoint.id)
    assert refused(same)[0][0] == "body.teacher"
    row_of(post(algorithm={"id": "opd"}, teacher=own, checkpoint_id=checkpoint.id))
    row_of(post(algorithm={"id": "sft", "options": {"min_reward": 1.0}}, teacher=own))


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"algorithm": {"id": "opd"}}, "body.teacher"),
        ({"loss": "sft"}, "body.teacher"),
        ({"teacher": teacher(MODEL)}, "body.teacher"),
        ({"loss": "sft", "teacher": teacher(MODEL) | {"client": {"base_url": "http://away"}}}, "body.teacher.client"),
        ({"algorithm": {"id": "opsd", "options": {"hints": "x"}}}, "body.algorithm.options.hints"),
    ],
)
def test_what_contradicts_is_named(post, fields, field):
    assert [name for name, _ in refused(post(**fields))] == [field]


def test_a_frozen_generator_feeds_sft_alone(post, ann):
    environments = [{"id": make_release(ann, "sums").environment.slug, "generator": "teacher"}]
    for algorithm in ("grpo", "opd"):
        fields = {"teacher": teacher(MODEL)} if algorithm == "opd" else {}
        found = refused(post(environments=environments, algorithm={"id": algorithm}, **fields))
        assert [name for name, _ in found] == ["body.environments.0.generator"]


# Replays


@pytest.fixture
def source(ann, pool) -> Run:
    """An ended run of two environments, with one recorded step: a good rollout of each, and a failed one."""
    environments = [{"id": make_release(ann, name).environment.slug} for name in ("sums", "maxes")]
    run = make_run(ann, name="source", environments=environments, secrets=[{"key": "JUDGE_KEY", "value": "a-very-secret-value"}])
    holder = holder_client(lease_run(pool).token)
    rows = [
        {"rollout_id": f"r{index}", "environment": environment, "state": state, "said": "a-very-secret-value"}
        for index, (environment, state) in enumerate(
            (("ann-lab/sums", "ok"), ("ann-lab/maxes", "ok"), ("ann-lab/maxes", "failed"))
        )
    ]
    report_rollouts(holder, rows)
    with acting_as_system():
        Run.objects.filter(id=run.id).update(state="COMPLETED")
        Lease.objects.filter(subject_id=run.id).update(released_at=datetime.now(UTC))
    return fresh(run)


def report_rollouts(holder, rows) -> None:
    summaries = [
        {
            "rollout_id": row["rollout_id"],
            "group_id": "g",
            "environment": row["environment"],
            "task": 0,
            "state": row["state"],
            "reward": 1.0 if row["state"] == "ok" else None,
            "trained": row["state"] == "ok",
            "policy_version_min": 0,
            "policy_version_max": 0,
            "turns": 1,
            "input_tokens": 1,
            "output_tokens": 1,
            "billed": True,
            "duration_s": 0.1,
        }
        for row in rows
    ]
    body = zstandard.compress("\n".join(map(json.dumps, rows)).encode())
    report = {
        "step": 1,
        "summaries": summaries,
        "body_zstd_b64": base64.b64encode(body).decode(),
        "body_sha256": hashlib.sha256(body).hexdigest(),
    }
    with override_settings(ROOT_URLCONF="controlplane.urls_internal"):
        answer = holder.post("/internal/v1/rollouts", json.dumps(report), content_type="application/json")
    assert answer.status_code == 200, answer.content


def replay(run: Run, environment: str = "ann-lab/maxes", **fields) -> dict:
    environments = [{"id": environment, "replay": {"run_id": run.id}} | fields]
    return {"environments": environments, "algorithm": {"id": "sft"}}


def test_the_holder_reads_the_good_rollouts_of_its_environment_and_nothing_else(post, source, pool):
    run = row_of(post(**replay(source)))
    granted = lease_run(pool)
    holder = holder_client(granted.token)
    with override_settings(ROOT_URLCONF="controlplane.urls_internal"):
        spec = holder.get("/internal/v1/attempt").json()
        page = holder.get("/internal/v1/replays/0/1")
        others = [holder.get(f"/internal/v1/replays/{place}").status_code for place in ("0/2", "1/1")]
    assert spec["subject_id"] == run.id
    assert spec["replays"] == [{"run_id": source.id, "steps": [{"step": 1, "rollouts_count": 3}]}]
    (rollout,) = page.json()["rollouts"]
    assert rollout["rollout_id"] == "r1" and "secret" not in page.content.decode()
    assert others == [404, 404]


def test_a_run_that_cannot_be_replayed_is_named_by_field(post, source, ann, pool):
    at = "body.environments.0.replay.run_id"
    waiting = make_run(ann)
    stranger = make_funded_member()
    foreign = make_run(stranger)
    assert refused(post(**replay(waiting)))[0][0] == at
    assert refused(post(**replay(source, environment=make_release(ann, "else").environment.slug)))[0][0] == at
    ((field, message),) = refused(post(**replay(foreign)))
    assert field == at and message == f"There is no run '{foreign.id}'."


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"algorithm": {"id": "grpo"}}, "body.environments.0.replay"),
        ({"environments": {"generator": "teacher"}}, "body.environments.0.generator"),
        ({"environments": {"teacher": teacher(MODEL)}}, "body.environments.0.teacher"),
        ({"teacher": teacher(MODEL)}, "body.teacher"),
    ],
)
def test_a_replay_feeds_sft_alone_and_asks_nobody(post, source, fields, field):
    body = replay(source, **fields.pop("environments", {})) | fields
    assert [name for name, _ in refused(post(**body))] == [field]


def test_who_plays_an_agent_is_resolved_for_training_and_for_the_evaluation_plan(post, ann, expert, pool):
    environment = {"id": make_release(ann, "calls").environment.slug}
    caller = {"user": {"model": {"name": "expert@40"}, "temperature": 0.5}}
    run = row_of(
        post(
            environments=[environment | {"seats": caller}],
            eval={"environments": [environment | {"seats": {"user": {"model": {"name": MODEL}}}}]},
        )
    )
    with acting_as_system():
        Run.objects.exclude(id=run.id).update(state="STOPPED")
    lease = lease_run(pool).lease
    with acting_as_system():
        spec = RunSubject().attempt_spec(fresh(run), lease)
    assert [{name: one.engine_name for name, one in agents.items()} for agents in spec.seats] == [
        {"user": f"{expert.run_id}.v40"},
        {"user": MODEL},
    ]
    assert spec.run.environments[0].seats["user"].temperature == 0.5
    assert row_of(post()).seats == []


def test_an_agent_that_cannot_be_played_is_refused_by_field(post, ann):
    environment = {"id": make_release(ann, "calls").environment.slug, "seats": {"user": {"model": {"name": "nobody"}}}}
    ((field, _),) = refused(post(environments=[environment]))
    assert field == "body.environments.0.seats.user.model.name"
