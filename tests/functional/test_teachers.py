"""Teachers at `POST /rft/runs`: which names resolve, what is refused by which field, and what the holder of the run is told."""

import pytest

from controlplane.core.tenancy import acting_as_system
from controlplane.runs.attempts import RunSubject
from controlplane.runs.models import Run
from tests.factories.adapters import make_adapter, make_checkpoint
from tests.factories.runs import MODEL, fresh, lease_run, make_funded_member, make_pool, make_release, make_run, run_body

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
