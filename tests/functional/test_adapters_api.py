"""Adapters and deployments: what teams wish, what engines do, what everybody sees of it."""

import pytest

from controlplane.adapters import services
from controlplane.adapters.access import resolve_served_model
from controlplane.adapters.errors import UnknownModel
from controlplane.adapters.models import Adapter, DeploymentStatus
from controlplane.core.errors import Conflict
from controlplane.core.models import OutboxMessage
from controlplane.core.tenancy import acting_as_system, acting_for
from controlplane.runs.models import Run
from tests.factories.adapters import make_adapter, make_checkpoint, make_deployed, report_of
from tests.factories.fake_engine import FakeEngine, running_engine
from tests.factories.runs import MODEL, fresh, make_funded_member, make_pool, make_run
from tests.factories.teams import make_member, without_names
from trainer.contracts.base import new_id
from trainer.contracts.events import RunState
from workers import deployments

pytestmark = pytest.mark.django_db
TOKEN = "a-pool-token-for-tests"


@pytest.fixture
def engine():
    with running_engine(MODEL) as engine:
        make_pool(pool_url=engine.url, inference_urls=[engine.url])
        yield engine


@pytest.fixture
def member(engine):
    return make_funded_member()


@pytest.fixture
def adapter(member, engine: FakeEngine) -> Adapter:
    adapter = make_adapter(member, version=40)
    engine.files[f"/artifacts/{adapter.path}"] = adapter.digest
    return adapter


def set_run_state(adapter: Adapter, state: RunState) -> None:
    with acting_as_system():
        Run.objects.filter(id=adapter.run_id).update(state=state)


def deploy(client_of, member, adapter):
    return client_of(member).post(f"/api/v1/rft/adapters/{adapter.id}/deploy")


# Versions


def test_a_report_makes_an_adapter_once(member):
    run = make_run(member)
    report = report_of(run, 3)
    with acting_as_system():
        assert services.record_version(run, report).pk == services.record_version(run, report).pk
    with acting_for(member.team_id):
        assert Adapter.objects.count() == 1


def test_a_version_never_changes_its_weights(member):
    run = make_run(member)
    with acting_as_system():
        services.record_version(run, report_of(run, 3))
        with pytest.raises(Conflict, match="version 3 exists with other weights"):
            services.record_version(run, report_of(run, 3))


def test_only_kept_versions_are_listed(member, client_of):
    run = make_run(member)
    make_adapter(member, run=run, version=1, keep=False)
    kept = make_adapter(member, run=run, version=2)
    body = client_of(member).get("/api/v1/rft/adapters").json()
    assert body["total"] == 1 and body["adapters"][0]["id"] == kept.id
    assert body["adapters"][0]["displayName"] == f"{run.name}@2"
    assert body["adapters"][0]["status"] == "READY" and body["adapters"][0]["deploymentStatus"] == "NOT_DEPLOYED"


def test_the_plan_keeps_the_newest_versions_and_what_is_served(member, client_of):
    run = make_run(member, adapters={"interval": 1, "keep_last": 2})
    first = make_adapter(member, run=run, version=1)
    with acting_for(member.team_id):
        services.deploy_adapter(member.actor, first.id)
    for version in (2, 3, 4, 5):
        make_adapter(member, run=run, version=version)
    listed = client_of(member).get("/api/v1/rft/adapters").json()["adapters"]
    assert [row["version"] for row in listed] == [5, 4, 1]


# Names


def test_every_spelling_of_a_served_model_resolves(member, adapter):
    with acting_for(member.team_id):
        run = make_run(member)
        base = resolve_served_model(member.actor, MODEL)
        by_id = resolve_served_model(member.actor, f"{MODEL}:{adapter.id}")
        by_step = resolve_served_model(member.actor, f"{adapter.run.name}@40")
    assert base.adapter is None and base.served.engine_name == MODEL
    assert by_id == by_step and by_id.served.engine_name == f"{adapter.run_id}.v40"
    assert by_id.served.adapter_digest == adapter.digest and run.name != adapter.run.name


@pytest.mark.parametrize(
    "name", ["nobody", "tiny:", "tiny:cxxxxxxxxxxxxxxxxxxxxxxxx", "other:{id}", "name@7", "name@x", "@", "tiny@1"]
)
def test_an_unknown_model_is_named(member, adapter, name):
    asked = name.format(id=adapter.id)
    with acting_for(member.team_id), pytest.raises(UnknownModel, match="does not exist or is not yours") as refusal:
        resolve_served_model(member.actor, asked)
    assert asked in refusal.value.detail


def test_another_teams_adapter_does_not_resolve(adapter):
    stranger = make_member()
    with acting_for(stranger.team_id), pytest.raises(UnknownModel):
        resolve_served_model(stranger.actor, f"{MODEL}:{adapter.id}")


# Wishes


def test_a_deployment_is_a_wish_that_the_reconciler_fulfils(member, adapter, engine, client_of):
    wished = deploy(client_of, member, adapter).json()["adapter"]
    assert wished["deploymentStatus"] == "DEPLOYING" and engine.loaded.keys() == {MODEL}
    with acting_as_system():
        message = OutboxMessage.objects.get(task="deployments.reconcile")
        deployments.reconcile(**message.payload)
    seen = client_of(member).get(f"/api/v1/rft/adapters/{adapter.id}").json()["adapter"]
    assert seen["deploymentStatus"] == "DEPLOYED" and seen["deployedAt"] and seen["deployedDigest"] == adapter.digest
    assert engine.loaded[f"{adapter.run_id}.v40"] == adapter.digest
    assert engine.requests[-1][2] == f"Bearer {TOKEN}"


def test_asking_twice_is_one_wish(member, adapter, client_of):
    assert [deploy(client_of, member, adapter).status_code for _ in range(2)] == [200, 200]
    assert OutboxMessage.objects.filter(task="deployments.reconcile").count() == 1


def test_an_engine_that_restarted_is_loaded_again(member, engine):
    adapter = make_deployed(member, engine)
    engine.restart()
    with acting_as_system():
        deployments.sweep()
    assert engine.loaded[adapter.engine_name] == adapter.digest
    assert fresh(adapter).deployment_status == DeploymentStatus.DEPLOYED


def test_a_sweep_over_a_settled_world_writes_nothing(member, engine):
    adapter = make_deployed(member, engine)
    with acting_as_system():
        deployments.sweep()
    assert fresh(adapter).updated_at == adapter.updated_at and engine.requests == []


def test_an_unload_frees_the_engine_once_the_run_has_ended(member, engine, client_of):
    adapter = make_deployed(member, engine)
    set_run_state(adapter, RunState.COMPLETED)
    body = client_of(member).post(f"/api/v1/rft/adapters/{adapter.id}/unload").json()["adapter"]
    assert body["deploymentStatus"] == "UNLOADING"
    with acting_as_system():
        deployments.reconcile(adapter.id)
    assert adapter.engine_name not in engine.loaded
    assert fresh(adapter).deployment_status == DeploymentStatus.NOT_DEPLOYED


def test_an_unload_leaves_a_live_run_its_policy(member, engine, client_of):
    adapter = make_deployed(member, engine)
    set_run_state(adapter, RunState.RUNNING)
    client_of(member).post(f"/api/v1/rft/adapters/{adapter.id}/unload")
    with acting_as_system():
        deployments.reconcile(adapter.id)
    assert adapter.engine_name in engine.loaded
    assert fresh(adapter).deployment_status == DeploymentStatus.NOT_DEPLOYED


def test_files_that_are_gone_fail_the_deployment_with_the_reason(member, adapter, engine, client_of):
    engine.files.clear()
    deploy(client_of, member, adapter)
    with acting_as_system():
        deployments.reconcile(adapter.id)
    seen = client_of(member).get(f"/api/v1/rft/adapters/{adapter.id}").json()["adapter"]
    assert seen["deploymentStatus"] == "DEPLOY_FAILED" and "no such adapter files" in seen["deploymentError"]


def test_an_engine_that_is_away_is_tried_again(member, adapter, engine, client_of):
    with acting_as_system():
        deploy(client_of, member, adapter)
        pool_urls, adapter.pool.inference_urls = adapter.pool.inference_urls, ["http://127.0.0.1:9"]
        adapter.pool.save()
        deployments.reconcile(adapter.id)
        assert fresh(adapter).deployment_status == DeploymentStatus.DEPLOYING and fresh(adapter).deployment_error
        adapter.pool.inference_urls = pool_urls
        adapter.pool.save()
        deployments.sweep()
    assert fresh(adapter).deployment_status == DeploymentStatus.DEPLOYED


def test_other_weights_under_the_name_fail_the_deployment(member, adapter, engine, client_of):
    engine.loaded[adapter.engine_name] = "f" * 64
    deploy(client_of, member, adapter)
    with acting_as_system():
        deployments.reconcile(adapter.id)
    assert fresh(adapter).deployment_status == DeploymentStatus.DEPLOY_FAILED


def test_what_was_seen_for_an_older_wish_is_not_written(member, adapter):
    with acting_for(member.team_id):
        older = services.deploy_adapter(member.actor, adapter.id).generation
        services.unload_adapter(member.actor, adapter.id)
        assert services.record_deployed(adapter.id, older, digest=adapter.digest) is False
    assert fresh(adapter).deployment_status == DeploymentStatus.UNLOADING


def test_a_rank_above_the_pools_limit_is_refused_with_the_limit(member, adapter, client_of):
    limit = client_of(member).get("/api/v1/rft/deployable-models").json()["limits"][MODEL]["rank_max"]
    with acting_for(member.team_id):
        Adapter.objects.filter(id=adapter.id).update(lora_rank=limit + 1)
    answer = deploy(client_of, member, adapter)
    assert (answer.status_code, answer.json()["code"]) == (422, "not_servable")
    assert f"rank {limit + 1} is above {limit}" in answer.json()["detail"]


def test_a_checkpoint_deploys_the_version_of_its_step(member, client_of):
    checkpoint = make_checkpoint(member, step=10)
    assert client_of(member).get("/api/v1/rft/adapters").json()["total"] == 0
    adapter = client_of(member).post(f"/api/v1/rft/checkpoints/{checkpoint.id}/deploy").json()["adapter"]
    assert (adapter["step"], adapter["deploymentStatus"]) == (10, "DEPLOYING")
    assert client_of(member).get("/api/v1/rft/adapters").json()["adapters"][0]["id"] == adapter["id"]


@pytest.mark.parametrize("action", ["", "/deploy", "/unload"])
def test_foreign_and_absent_adapters_look_the_same(adapter, client_of, action):
    client, nothing = client_of(make_member()), new_id()
    method = client.post if action else client.get
    foreign, absent = (method(f"/api/v1/rft/adapters/{name}{action}") for name in (adapter.id, nothing))
    assert foreign.status_code == absent.status_code == 404
    assert without_names(foreign, adapter.id) == without_names(absent, nothing)
