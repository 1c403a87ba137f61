"""`/rft/runs` in the public client's shapes: what is accepted, what is refused by name, what an owner may do when."""

from datetime import UTC, datetime

import pytest

from controlplane.billing.services import record_usage
from controlplane.core.models import OutboxMessage
from controlplane.core.tenancy import acting_as_system
from controlplane.hub.models import Badge, Release
from controlplane.runs.lifecycle import explain_waiting
from controlplane.runs.models import Run, RunMetric
from tests.factories.runs import fresh, fund, lease_run, make_funded_member, make_pool, make_release, make_run, run_body
from tests.factories.teams import Member, make_member, make_shared_team, without_names
from trainer.contracts.base import new_id
from trainer.contracts.events import Meter
from trainer.contracts.internal import UsageIn

pytestmark = pytest.mark.django_db
RUNS = "/api/v1/rft/runs"
AT = datetime(2026, 11, 1, tzinfo=UTC)


@pytest.fixture
def pool():
    return make_pool()


@pytest.fixture
def ann(pool) -> Member:
    return make_funded_member("ann-lab")


@pytest.fixture
def client(ann, client_of):
    return client_of(ann)


def refused_fields(answer) -> list[str]:
    assert answer.status_code == 422, answer.content
    return [".".join(map(str, problem["loc"])) for problem in answer.json()["detail"]]


def test_a_run_is_accepted_with_its_effective_configuration(client, ann):
    release = make_release(ann, "rules")
    answer = client.post(RUNS, run_body(release, name="sums", learning_rate=2e-3) | {"team_id": ann.team_id})
    run = answer.json()["run"]
    assert answer.status_code == 200, run
    assert (run["status"], run["name"], run["kind"], run["runsAhead"]) == ("QUEUED", "sums", "SHARED_RFT_HOSTED", 0)
    assert {"id", "userId", "createdAt", "updatedAt"} <= {name for name, value in run.items() if value}
    effective = run["effectiveConfig"]
    assert effective["environments"][0] | {"id": "ann-lab/rules", "version": "0.1.0"} == effective["environments"][0]
    assert (effective["max_off_policy_steps"], effective["learning_rate"]) == (8, 2e-3)
    assert client.get(f"{RUNS}/{run['id']}").json()["run"]["id"] == run["id"]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"divide_by_stdd": True}, "body.algorithm.options.divide_by_stdd"),
        ({"divide_by_std": "no idea"}, "body.algorithm.options.divide_by_std"),
    ],
)
def test_an_option_of_the_algorithm_that_is_wrong_is_named_at_once(client, ann, options, field):
    body = run_body(make_release(ann)) | {"algorithm": {"id": "grpo", "options": options}}
    assert refused_fields(client.post(RUNS, body)) == [field]


@pytest.mark.parametrize(
    ("algorithm", "more", "fields"),
    [
        ({"id": "echo", "options": {"alpha": 0}}, {}, ["environments.0.algorithm.options.alpha"]),
        ({"id": "rae", "options": {"decay": 1.0}}, {}, ["environments.0.algorithm.options.decay"]),
        ({"id": "max_rl", "options": {"alpha": 1.0}}, {}, ["environments.0.algorithm.options.alpha"]),
        ({"id": "rae", "loss": "ipo"}, {}, ["environments.0.algorithm.loss"]),
        ({"options": {}}, {}, ["environments.0.algorithm.id"]),
        ({"id": "max_rl"}, {"group_size": 1}, ["environments.0.group_size"]),
        ({"id": "echo"}, {"group_size": 1}, ["environments.0.group_size"]),
        ({"id": "rae"}, {"group_size": 1}, []),
    ],
)
def test_an_environments_own_algorithm_is_checked_where_it_stands(client, ann, algorithm, more, fields):
    release = make_release(ann)
    entry = {"id": release.environment.slug, "algorithm": algorithm} | more
    answer = client.post(RUNS, run_body(release, environments=[entry]))
    if fields:
        assert refused_fields(answer) == [f"body.{field}" for field in fields]
    else:
        assert answer.json()["run"]["effectiveConfig"]["environments"][0]["algorithm"] == {"id": "rae", "options": {}}


@pytest.mark.parametrize(
    ("fields", "loc"),
    [
        ({"rollouts_per_example": 1}, "body.rollouts_per_example"),
        ({"rollouts_per_example": 1, "algorithm": {"id": "max_rl"}}, "body.rollouts_per_example"),
        ({"eval": {"environments": [{"id": "x", "algorithm": {"id": "rae"}}]}}, "body.eval.environments.0.algorithm"),
        ({"eval": {"environments": [{"id": "x", "group_rewards": []}]}}, "body.eval.environments.0.group_rewards"),
    ],
)
def test_an_algorithm_that_could_not_work_is_refused_before_anything_starts(client, ann, fields, loc):
    answer = client.post(RUNS, run_body(make_release(ann)) | fields)
    assert refused_fields(answer) == [loc]
    assert "rae" in answer.content.decode() or "evaluation" in answer.content.decode()


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"group_rewards": [{"name": "a"}, {"name": "a", "weight": 2}]}, "group_rewards"),
        ({"group_rewards": [{"name": "a"}], "group_size": 1, "algorithm": {"id": "rae"}}, "group_rewards"),
        ({"group_rewards": [{"name": "a", "weight": "much"}]}, "group_rewards.0.weight"),
        ({"group_rewards": [{"weight": 1}]}, "group_rewards.0.name"),
    ],
)
def test_group_rewards_that_could_not_work_are_refused_before_anything_starts(client, ann, more, field):
    release = make_release(ann)
    answer = client.post(RUNS, run_body(release) | {"environments": [{"id": release.environment.slug} | more]})
    assert refused_fields(answer) == [f"body.environments.0.{field}"]


def test_a_group_larger_than_what_may_be_in_flight_is_refused(client, ann):
    release = make_release(ann)
    entry = {"id": release.environment.slug, "group_size": 32}
    answer = client.post(RUNS, run_body(release, environments=[entry], max_inflight_rollouts=16))
    assert refused_fields(answer) == ["body.max_inflight_rollouts"]


def test_both_spellings_of_the_address_work(client, ann):
    assert client.post(f"{RUNS}/", run_body(make_release(ann))).status_code == 200


@pytest.mark.parametrize(
    ("fields", "loc"),
    [
        ({"learningrate": 1}, "body.learningrate"),
        ({"max_steps": 0}, "body.max_steps"),
        ({"batch_size": 10}, "body"),
        ({"model": {"name": "gpt-9"}}, "body.model.name"),
        ({"lora_rank": 128}, "body.lora_rank"),
        ({"max_tokens": 4096}, "body.max_tokens"),
        ({"teacher": {"model": {"name": "x"}}}, "body.teacher"),
    ],
)
def test_what_is_wrong_is_named(client, ann, fields, loc):
    assert refused_fields(client.post(RUNS, run_body(make_release(ann)) | fields)) == [loc]
    with acting_as_system():
        assert not Run.objects.exists() and not OutboxMessage.objects.filter(task="runs.schedule_runs").exists()


@pytest.mark.parametrize("reference", ["ann-lab/nothing", "ann-lab/rules@9.9.9", "nobody/rules"])
def test_an_unknown_environment_or_version_is_named(client, ann, reference):
    release = make_release(ann, "rules")
    answer = client.post(RUNS, run_body(release, environments=[{"id": reference}]))
    assert answer.status_code == 404 and reference.split("@")[0] in answer.json()["detail"]


def test_legacy_keys_are_accepted_with_a_notice(client, ann):
    run = client.post(RUNS, run_body(make_release(ann), buffer={"x": 1}, max_async_level=2)).json()["run"]
    assert "buffer" in run["notice"] and run["effectiveConfig"]["max_off_policy_steps"] == 2


def test_a_release_that_failed_its_check_is_refused_unless_forced(client, ann):
    body = run_body(make_release(ann, badge=Badge.RED))
    refused = client.post(RUNS, body)
    assert (refused.status_code, refused.json()["code"]) == (409, "red_badge")
    assert "line 3" in refused.json()["detail"]
    assert client.post(f"{RUNS}?force=true", body).status_code == 200
    assert client.post(RUNS, body | {"run_config": {"force": True}}).status_code == 200


def test_a_release_that_trains_nobody_is_evaluated_and_refused_as_training_by_field(client, ann):
    release, watched = make_release(ann, "rules"), make_release(ann, "watched")
    seen = {"agents": ["judge"], "trained_agents": [], "turns": 1, "calls_tools": False}
    with acting_as_system():
        Release.objects.filter(id=watched.id).update(verdict={"ok": True, "summary": "plays", "compatibility": seen})
    both = run_body(release, environments=[{"id": "rules"}, {"id": "watched"}])
    refused = client.post(RUNS, both)
    assert refused_fields(refused) == ["body.environments.1.id"]
    assert refused.json()["code"] == "not_trainable" and "watched@0.1.0" in refused.json()["detail"][0]["msg"]
    assert client.post(RUNS, run_body(release, eval={"environments": [{"id": "watched"}]})).status_code == 200
    assert client.post(f"{RUNS}?force=true", both).status_code == 200
    wanted = {"environment_ids": ["watched"], "inference_model": "tiny", "eval_config": {}}
    assert client.post("/api/v1/hosted-evaluations", wanted).status_code == 200


def test_an_empty_wallet_starts_nothing(client_of, pool):
    poor = make_member()
    answer = client_of(poor).post(RUNS, run_body(make_release(poor)))
    assert (answer.status_code, answer.json()["code"]) == (402, "insufficient_funds")
    fund(poor)
    assert client_of(poor).post(RUNS, run_body(make_release(poor))).status_code == 200


def test_secrets_never_come_back(client, ann):
    body = run_body(make_release(ann), secrets=[{"key": "API_KEY", "value": "hunter2hunter2"}])
    created = client.post(RUNS, body)
    assert created.status_code == 200
    run_id = created.json()["run"]["id"]
    assert b"hunter2" not in created.content + client.get(f"{RUNS}/{run_id}").content
    with acting_as_system():
        assert "hunter2" not in str(Run.objects.filter(id=run_id).values()[0])


def test_the_list_is_the_teams_own_newest_first(client, ann, client_of):
    first, second = make_run(ann), make_run(ann)
    make_run(make_funded_member())
    page = client.get(RUNS, {"limit": 1}).json()
    assert [run["id"] for run in page["runs"]] == [second.id]
    assert (page["total"], page["total_pages"]) == (2, 2)
    assert [run["id"] for run in client.get(RUNS, {"limit": 1, "page": 2}).json()["runs"]] == [first.id]


def test_the_list_says_how_runs_do_and_finds_them(client, ann):
    run, other = make_run(ann), make_run(ann)
    with acting_as_system():
        rows = [
            RunMetric(run=run, team_id=run.team_id, step=step, attempt=1, segment=1, at=AT, values={"reward": step / 4})
            for step in (1, 2)
        ]
        RunMetric.objects.bulk_create(rows)
        Run.objects.filter(id=other.id).update(state="COMPLETED", name="plum")
        usage = [UsageIn(meter=Meter.TRAINING_TOKENS, sequence="1", quantity=5_000, at=AT)]
        record_usage(team_id=run.team_id, subject_kind="run", subject_id=run.id, segment=1, model=run.base_model, events=usage)
    rewards = {row["id"]: (row["latestReward"], row["costMicrousd"] > 0) for row in client.get(RUNS).json()["runs"]}
    assert rewards == {run.id: (0.5, True), other.id: (None, False)}

    def found(**query: str) -> list[str]:
        return [row["id"] for row in client.get(RUNS, query).json()["runs"]]

    environment = client.get(f"{RUNS}/{run.id}").json()["run"]["environments"][0]["id"]
    assert found(status="COMPLETED") == found(search="PLU") == [other.id]
    assert found(environment=environment, model=run.base_model) == [run.id]
    assert found(environment="nobody/nothing") == found(model="no-such-model") == []
    assert client.get(RUNS, {"status": "LOST"}).status_code == 422


def test_foreign_and_absent_look_the_same(ann, client_of):
    run = make_run(ann)
    stranger, nothing = client_of(make_funded_member()), new_id()
    for verb, suffix in [
        ("get", ""),
        ("delete", ""),
        ("put", "/stop"),
        ("put", "/restart"),
        ("get", "/logs"),
        ("get", "/metrics"),
    ]:
        foreign, absent = (getattr(stranger, verb)(f"{RUNS}/{run_id}{suffix}") for run_id in (run.id, nothing))
        assert foreign.status_code == absent.status_code == 404
        assert without_names(foreign, run.id) == without_names(absent, nothing)
    assert fresh(run).state == "QUEUED"


def test_a_member_reaches_a_shared_teams_run_without_naming_the_team(pool, client_of):
    """The public client names a team when it lists and creates, and only an id afterwards."""
    one, other = make_member(), make_member()
    shared, _ = make_shared_team(one, other)
    fund(shared)
    run = make_run(shared)
    assert client_of(other).get(f"{RUNS}/{run.id}").status_code == 200
    assert client_of(other).put(f"{RUNS}/{run.id}/stop").json()["run"]["status"] == "STOPPED"
    assert client_of(make_member()).get(f"{RUNS}/{run.id}").status_code == 404


def test_a_waiting_run_stops_pauses_and_resumes_at_once(client, ann):
    path = f"{RUNS}/{make_run(ann).id}"
    assert client.put(f"{path}/pause").json()["run"]["status"] == "PAUSED"
    assert client.put(f"{path}/resume").json()["run"]["status"] == "QUEUED"
    assert [client.put(f"{path}/stop").json()["run"]["status"] for _ in range(2)] == ["STOPPED", "STOPPED"]
    assert client.put(f"{path}/resume").status_code == 409


def test_stopping_a_starting_run_ends_it_and_fences_its_holder(client, ann, pool):
    run = make_run(ann)
    granted = lease_run(pool)
    assert client.put(f"{RUNS}/{run.id}/stop").json()["run"]["status"] == "STOPPED"
    assert fresh(granted.lease).released_at is not None
    assert fresh(run).failure_code == "stopped_by_user"


def test_a_restart_opens_a_new_segment_and_fences_the_holder(client, ann, pool):
    run = make_run(ann)
    granted = lease_run(pool)
    restarted = client.put(f"{RUNS}/{run.id}/restart").json()["run"]
    assert (restarted["status"], restarted["segment"]) == ("QUEUED", 2)
    assert fresh(granted.lease).released_at is not None
    second = lease_run(pool)
    assert (second.lease.segment, second.lease.fencing_token) == (2, granted.lease.fencing_token + 1)


def test_only_an_ended_run_is_deleted_and_then_gone(client, ann):
    path = f"{RUNS}/{make_run(ann).id}"
    assert client.delete(path).status_code == 409
    client.put(f"{path}/stop")
    assert client.delete(path).status_code == 200
    assert client.get(path).status_code == 404 and client.get(RUNS).json()["total"] == 0


def test_a_full_pool_says_why_a_run_waits_and_how_many_are_ahead(client, ann):
    pool = make_pool(run_slots=1)
    make_run(ann)
    lease_run(pool)
    make_run(ann)
    last = make_run(ann)
    with acting_as_system():
        explain_waiting(pool)
    waiting = client.get(f"{RUNS}/{last.id}").json()["run"]
    assert waiting["runsAhead"] == 1 and "all 1 places" in waiting["queueReason"]


def test_the_log_of_a_run_that_has_not_started_says_so(client, ann):
    answer = client.get(f"{RUNS}/{make_run(ann).id}/logs")
    assert answer.status_code == 404 and "queued" in answer.json()["detail"]


def test_models_are_listed_with_prices(client, pool):
    (model,) = client.get("/api/v1/rft/models").json()["models"]
    assert (model["name"], model["atCapacity"], model["trainingPricePerMtok"]) == ("tiny", False, 0.06)
    assert client.get("/api/v1/training/available-fft-models").json()["models"][0]["name"] == "tiny"


def trainer_config(release, **tables):
    return {
        "name": "ded-demo",
        "max_steps": 20,
        "model": {"name": "tiny"},
        "trainer": {"optim": {"lr": 1e-3}, "model": {"lora": {"rank": 8, "alpha": 16}}},
        "orchestrator": {"batch_size": 64, "group_size": 8, "train": {"env": [{"id": release.environment.slug}]}},
        "inference": {},
    } | tables


def test_a_whole_trainer_configuration_with_lora_starts_a_shared_run(client, ann):
    config = trainer_config(make_release(ann), wandb={"project": "x"})
    body = {"config": config, "name": "ded-demo", "hfToken": "hf_abcdefgh"}
    made = client.post("/api/v1/training/runs", body).json()
    assert made["runId"] and made["tokenValue"], made
    run = client.get(f"{RUNS}/{made['runId']}").json()["run"]
    assert "[wandb]" in run["notice"]
    assert (run["name"], run["maxSteps"], run["learningRate"], run["batchSize"]) == ("ded-demo", 20, 1e-3, 64)
    assert client.post(f"/api/v1/training/runs/{made['runId']}/pause").status_code == 200
    assert client.post(f"/api/v1/training/runs/{made['runId']}/resume").json()["runId"] == made["runId"]


def test_what_a_shared_run_has_no_place_for_is_named(client, ann):
    release = make_release(ann)
    full = trainer_config(release, trainer={"optim": {"lr": 1e-5}})
    assert refused_fields(client.post("/api/v1/training/runs", {"config": full})) == ["body.config.trainer.model.lora"]
    odd = trainer_config(release, orchestrator={"token_batch_size": 9, "train": {"env": [{"id": release.environment.slug}]}})
    refused = refused_fields(client.post("/api/v1/training/runs", {"config": odd}))
    assert refused == ["body.config.orchestrator.token_batch_size"]
    assert refused_fields(client.post("/api/v1/training/runs", {"config": {}, "gpuType": "H200"})) == ["body.gpuType"]


def test_the_newest_client_skips_local_validation(client):
    """It asks first, and goes on by itself when there is nothing at the address."""
    assert client.post("/api/v1/training/runs/prepare").status_code in {404, 405}
