"""Evaluations in the public client's shapes: hosted ones from request to result, and pushed ones."""

import base64
import hashlib
import json
from datetime import UTC, datetime, timedelta

import pytest
import zstandard

from controlplane.billing.services import record_usage
from controlplane.core.tenancy import acting_as_system
from controlplane.evals import lifecycle, queries
from controlplane.evals.models import Evaluation, EvaluationSample
from controlplane.hub.models import Badge
from controlplane.pools.access import live_lease
from controlplane.pools.bodies import store_body
from controlplane.pools.services import proven, release_lease, take_back
from tests.factories.adapters import make_adapter
from tests.factories.runs import fresh, lease_evaluation, make_evaluation, make_funded_member, make_pool, make_release, make_run
from tests.factories.teams import make_member, without_names
from trainer.contracts.base import new_id
from trainer.contracts.events import EventKind, Meter
from trainer.contracts.internal import EventBatch, EventIn, Finish, Heartbeat, RolloutBatch, RolloutSummary, UsageIn

pytestmark = pytest.mark.django_db
HOSTED, EVALUATIONS = "/api/v1/hosted-evaluations", "/api/v1/evaluations"
MESSAGES = [{"role": "user", "content": "3+4?"}, {"role": "assistant", "content": "sum 7"}]


@pytest.fixture
def pool():
    return make_pool()


@pytest.fixture
def ann(pool):
    return make_funded_member("ann-lab")


@pytest.fixture
def client(ann, client_of):
    return client_of(ann)


class Holder:
    """Reports as the holder of an evaluation's lease."""

    def __init__(self, granted) -> None:
        self.token = granted.token

    def do(self, name: str, *arguments):
        with acting_as_system(), proven(self.token) as held:
            answer = getattr(held.subject, name)(held.row, held.lease, *arguments)
            if name == "on_finish":
                release_lease(held.lease, reason="finished")
            return answer

    def rollouts(self, number: int, *rewards: float | None, first_task: int = 0) -> int:
        batch = rollout_batch(number, *rewards, first_task=first_task)
        with acting_as_system(), proven(self.token) as held:
            return held.subject.on_rollouts(held.row, held.lease, batch, store_body(held.lease, batch))


def rollout_batch(number: int, *rewards: float | None, first_task: int = 0) -> RolloutBatch:
    """One rollout a task, from `first_task` on; one without a reward is a failure of ours."""
    counts = {"policy_version_min": 0, "policy_version_max": 0, "turns": 1, "input_tokens": 3, "output_tokens": 2}
    rows = [
        RolloutSummary(
            rollout_id=f"{number}-{index}",
            group_id="g",
            environment="ann-lab/rules",
            task=first_task + index,
            state="infrastructure" if reward is None else "ok",
            metrics={} if reward is None else {"correct": reward},
            reward=reward,
            trained=False,
            billed=True,
            duration_s=0.1,
            **counts,
        )
        for index, reward in enumerate(rewards)
    ]
    records = [{"rollout_id": row.rollout_id, "traces": [{"trainable": True, "messages": MESSAGES}]} for row in rows]
    body = zstandard.compress("\n".join(map(json.dumps, records)).encode())
    encoded, digest = base64.b64encode(body).decode(), hashlib.sha256(body).hexdigest()
    return RolloutBatch(step=number, tag="eval", summaries=rows, body_zstd_b64=encoded, body_sha256=digest)


def hosted_body(release, **options):
    return {"environment_ids": [release.environment_id], "inference_model": "tiny", "eval_config": options}


def test_a_hosted_evaluation_is_accepted_per_environment(client, ann):
    first, second = make_release(ann), make_release(ann)
    body = hosted_body(first, num_examples=128, sampling_args={"max_tokens": 64}, env_args={"low": 1}, allow_sandbox_access=True)
    answer = client.post(
        HOSTED, body | {"environment_ids": [first.environment_id, second.environment.slug], "team_id": ann.team_id}
    )
    made = answer.json()
    assert answer.status_code == 200, made
    assert made["evaluation_id"] == made["evaluation_ids"][0] and len(made["evaluation_ids"]) == 2
    found = client.get(f"{EVALUATIONS}/{made['evaluation_id']}").json()
    assert (found["status"], found["is_hosted"], found["model_name"]) == ("PENDING", True, "tiny")
    assert found["eval_config"]["environment"]["args"] == {"low": 1} and found["eval_config"]["max_tokens"] == 64
    assert found["metadata"]["num_examples"] == 128


@pytest.mark.parametrize(
    ("options", "loc"),
    [
        ({"num_example": 1}, ["body", "eval_config", "num_example"]),
        ({"rollouts_per_example": 0}, ["body", "eval_config", "rollouts_per_example"]),
        ({"api_base_url": "http://elsewhere"}, ["body", "eval_config", "api_base_url"]),
    ],
)
def test_what_is_wrong_is_named(client, ann, options, loc):
    answer = client.post(HOSTED, hosted_body(make_release(ann), **options))
    assert answer.status_code == 422 and answer.json()["detail"][0]["loc"] == loc


def test_an_agent_that_another_model_plays_is_in_the_orders(client, ann, pool):
    seats = {"user": {"model": {"name": "tiny"}, "temperature": 0.5}}
    assert client.post(HOSTED, hosted_body(make_release(ann), seats=seats)).status_code == 200
    spec = Holder(lease_evaluation(pool)).do("attempt_spec")
    assert [{name: one.engine_name for name, one in agents.items()} for agents in spec.seats] == [{"user": "tiny"}]
    assert spec.eval.environment.seats["user"].temperature == 0.5
    refused = client.post(HOSTED, hosted_body(make_release(ann), seats={"user": {"model": {"name": "nobody"}}}))
    assert refused.status_code in (404, 422), refused.content
    assert refused.json()["detail"][0]["loc"] == ["body", "eval_config", "seats", "user", "model", "name"]


@pytest.mark.parametrize("model", ["gpt-9", "tiny:c00000000000000000000000a"])
def test_an_unknown_model_is_named(client, ann, model):
    answer = client.post(HOSTED, hosted_body(make_release(ann)) | {"inference_model": model})
    assert answer.status_code == 404 and model in str(answer.json()["detail"])


def test_a_step_of_a_run_names_the_version_that_was_kept_there(client, ann, pool):
    run = make_run(ann, name="wordle")
    second, third = (make_adapter(ann, run=run, version=version) for version in (2, 3))
    make_adapter(ann, run=run, version=4, keep=False)
    body = hosted_body(make_release(ann))
    assert client.post(HOSTED, body | {"inference_model": f"wordle@{second.step}"}).status_code == 200
    served = Holder(lease_evaluation(pool)).do("attempt_spec").served_model
    assert (served.engine_name, served.adapter_digest) == (second.engine_name, second.digest)
    for absent in (second.step + 100, "last"):
        answer = client.post(HOSTED, body | {"inference_model": f"wordle@{absent}"})
        assert answer.status_code == 404 and f"wordle@{absent}" in str(answer.json()["detail"])
        assert answer.json()["hint"] == f"wordle has versions of steps {third.step}, {second.step}."


def test_the_steps_of_somebody_elses_run_are_told_to_nobody(client, ann, client_of):
    body = hosted_body(make_release(ann))
    bob = make_funded_member("bob-lab")
    make_adapter(bob, run=make_run(bob, name="wordle"), version=2)
    answer, nothing = (client.post(HOSTED, body | {"inference_model": f"{name}@9"}) for name in ("wordle", "nobodys"))
    assert (answer.status_code, answer.json()["hint"]) == (404, nothing.json()["hint"])


def test_several_models_are_a_group_that_others_may_join(client, ann, client_of):
    body = hosted_body(make_release(ann)) | {"inference_models": ["tiny", "tiny:" + make_adapter(ann).id]}
    body.pop("inference_model")
    made = client.post(HOSTED, body).json()
    assert len(made["evaluation_ids"]) == 2 and made["group_id"]
    joined = client.post(HOSTED, hosted_body(make_release(ann)) | {"group_id": made["group_id"]}).json()
    listed = client.get(f"{EVALUATIONS}/", {"group_id": made["group_id"]}).json()
    assert {row["evaluation_id"] for row in listed["evaluations"]} == {*made["evaluation_ids"], joined["evaluation_id"]}
    stranger = client_of(make_funded_member())
    foreign = [stranger.post(HOSTED, hosted_body(make_release(ann)) | {"group_id": one}) for one in (made["group_id"], new_id())]
    assert [answer.status_code for answer in foreign] == [404, 404]
    assert client.post(HOSTED, body | {"inference_model": "tiny"}).status_code == 422
    assert client.post(HOSTED, hosted_body(make_release(ann)) | {"inference_models": ["a", "a"]}).status_code == 422


EXTERNAL = {"api_base_url": "https://models.example.com/v1", "api_key_var": "THEIR_KEY"}


def test_an_external_models_key_is_for_the_orchestrator_and_never_for_the_sandbox(client, ann, pool):
    options = EXTERNAL | {"custom_secrets": {"THEIR_KEY": "sk-their-own-key", "OTHER": "for the environment"}}
    prices = {"input_usd_per_mtok": 1.0, "output_usd_per_mtok": 2.0}
    body = hosted_body(make_release(ann), **options, prices=prices) | {"inference_model": "their/model"}
    made = client.post(HOSTED, body).json()
    spec = Holder(lease_evaluation(pool)).do("attempt_spec")
    assert (spec.external.base_url, spec.external.model) == (EXTERNAL["api_base_url"], "their/model")
    assert spec.external.api_key == "sk-their-own-key" and spec.secrets == {"OTHER": "for the environment"}
    answer = client.get(f"{EVALUATIONS}/{made['evaluation_id']}")
    assert answer.json()["metadata"]["prices"] == prices and b"sk-their" not in answer.content


def test_the_teams_secret_is_a_key_too_and_no_sandbox_sees_it(client, ann, pool):
    secret = {"name": "THEIR_KEY", "value": "sk-of-the-team"}
    assert client.post("/api/v1/secrets/", secret).status_code in (200, 201)
    assert client.post(HOSTED, hosted_body(make_release(ann), **EXTERNAL)).status_code == 200
    holder = Holder(lease_evaluation(pool))
    spec = holder.do("attempt_spec")
    assert spec.external.api_key == "sk-of-the-team" and spec.secrets == {}


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"api_base_url": "ftp://models.example.com"}, "api_base_url"),
        ({"api_base_url": "http://models.example.com"}, "api_base_url"),
        ({"api_base_url": "https://user:word@models.example.com"}, "api_base_url"),
        ({"api_base_url": "https://169.254.169.254/latest"}, "api_base_url"),
        ({"api_base_url": "https://[::1]/v1"}, "api_base_url"),
        ({"api_base_url": "https://localhost:8000/v1"}, "api_base_url"),
        ({"api_base_url": "https://[oops/v1"}, "api_base_url"),
        (EXTERNAL, "api_key_var"),
        ({"api_key_var": "THEIR_KEY"}, "api_key_var"),
        ({"api_base_url": EXTERNAL["api_base_url"], "seats": {"user": {"model": {"name": "tiny"}}}}, "seats"),
    ],
)
def test_an_address_or_a_key_that_will_not_do_is_named(client, ann, options, field):
    answer = client.post(HOSTED, hosted_body(make_release(ann), **options))
    assert answer.status_code == 422 and answer.json()["detail"][0]["loc"] == ["body", "eval_config", field], answer.content


def test_an_unknown_environment_a_red_one_and_an_empty_wallet_start_nothing(client, ann, client_of):
    assert client.post(HOSTED, hosted_body(make_release(ann)) | {"environment_ids": ["ann-lab/none"]}).status_code == 404
    assert client.post(HOSTED, hosted_body(make_release(ann, badge=Badge.RED))).json()["code"] == "red_badge"
    poor = make_member()
    assert client_of(poor).post(HOSTED, hosted_body(make_release(poor))).status_code == 402
    with acting_as_system():
        assert not Evaluation.objects.exists()


def test_from_lease_to_result(client, ann, pool):
    evaluation = make_evaluation(ann, num_examples=4)
    holder = Holder(lease_evaluation(pool))
    spec = holder.do("attempt_spec")
    assert (spec.kind, spec.eval.num_examples, spec.served_model.engine_name) == ("eval", 4, "tiny")
    assert holder.do("on_heartbeat", Heartbeat()).desired == "run"
    at = datetime.now(UTC)
    line = EventIn(sequence=1, kind=EventKind.LOG, at=at, payload={"message": "warming up", "level": "info"})
    assert [holder.do("on_events", EventBatch(events=[line])) for _ in range(2)] == [1, 0]
    assert [holder.rollouts(0, 1.0, 0.0), holder.rollouts(0, 1.0, 0.0), holder.rollouts(1, 1.0, first_task=2)] == [2, 0, 1]
    assert client.get(f"{EVALUATIONS}/{evaluation.id}").json()["status"] == "RUNNING"
    holder.do("on_finish", Finish(outcome="completed"))
    found = client.get(f"{EVALUATIONS}/{evaluation.id}").json()
    assert (found["status"], found["total_samples"]) == ("COMPLETED", 3)
    assert found["avg_score"] == found["metrics"]["correct"] == pytest.approx(2 / 3)
    assert (found["metrics"]["rollouts"], found["metrics"]["failed"]) == (3, 0)
    page = client.get(f"{EVALUATIONS}/{evaluation.id}/samples", {"limit": 2}).json()
    assert (page["total"], page["total_pages"], len(page["samples"])) == (3, 2, 2)
    sample = page["samples"][0]
    assert (sample["prompt"], sample["completion"], sample["reward"], sample["billed"]) == (MESSAGES[:1], MESSAGES[1:], 1.0, True)
    assert "warming up" in client.get(f"{HOSTED}/{evaluation.id}/logs").json()["logs"]


def lose(granted) -> None:
    with acting_as_system():
        take_back(granted.lease.id, reason="died", only_expired=False)
        Evaluation.objects.update(eligible_at="2026-01-01T00:00:00Z")


def test_a_lost_attempt_goes_on_under_its_id_and_makes_again_only_what_was_our_failure(client, ann, pool):
    evaluation = make_evaluation(ann, num_examples=4)
    granted = lease_evaluation(pool)
    holder = Holder(granted)
    holder.do("on_heartbeat", Heartbeat())
    assert holder.rollouts(1, 1.0, None, 0.0) == 3
    lose(granted)
    holder = Holder(lease_evaluation(pool))
    assert holder.do("attempt_spec").done == [(0, 0), (2, 0)]
    assert holder.rollouts(1, 1.0, first_task=1) == 0, "the failure is overwritten"
    assert holder.rollouts(2, 1.0, first_task=3) == 1
    holder.do("on_finish", Finish(outcome="completed"))
    found = client.get(f"{EVALUATIONS}/{evaluation.id}").json()
    assert (found["avg_score"], found["total_samples"], found["statistics"]["missing"]) == (0.75, 4, {})
    samples = client.get(f"{EVALUATIONS}/{evaluation.id}/samples").json()["samples"]
    assert [(one["example_id"], one["reward"]) for one in samples] == [(0, 1.0), (1, 1.0), (2, 0.0), (3, 1.0)]


def test_too_many_lost_attempts_fail_it_and_what_they_found_is_kept(ann, pool):
    evaluation = make_evaluation(ann)
    for attempt in range(lifecycle.LOST_ATTEMPTS_MAX):
        granted = lease_evaluation(pool)
        holder = Holder(granted)
        holder.do("on_heartbeat", Heartbeat())
        assert holder.rollouts(1, 1.0, first_task=attempt) == 1
        lose(granted)
    row = fresh(evaluation)
    assert (row.status, row.error_code) == ("FAILED", "attempts_exhausted")
    assert (row.samples_count, row.avg_score) == (lifecycle.LOST_ATTEMPTS_MAX, 1.0)


def test_failures_of_ours_are_missing_and_never_a_reward_of_zero(client, ann, pool):
    evaluation = make_evaluation(ann)
    holder = Holder(lease_evaluation(pool))
    holder.do("on_heartbeat", Heartbeat())
    holder.rollouts(1, 1.0, None, None, 1.0)
    holder.do("on_finish", Finish(outcome="completed"))
    found = client.get(f"{EVALUATIONS}/{evaluation.id}").json()
    assert (found["avg_score"], found["metrics"]["failed"]) == (1.0, 2)
    assert (found["statistics"]["rewards_count"], found["statistics"]["missing"]) == (2, {"infrastructure": 2})
    assert found["statistics"]["pass_rates"] == [{"k": 1, "examples": 2, "any_of": 1.0, "all_of": 1.0}]


def test_cancelling_ends_a_waiting_one_at_once_and_tells_the_holder_of_a_running_one(client, ann, pool):
    waiting = make_evaluation(ann)
    cancelled = client.patch(f"{HOSTED}/{waiting.id}/cancel").json()
    assert (cancelled["success"], cancelled["status"]) == (True, "CANCELLED")
    running = make_evaluation(ann)
    holder = Holder(lease_evaluation(pool))
    holder.do("on_heartbeat", Heartbeat())
    assert client.patch(f"{HOSTED}/{running.id}/cancel").json()["status"] == "RUNNING"
    assert holder.do("on_heartbeat", Heartbeat()).desired == "stop"
    holder.rollouts(1, 1.0, 0.0)
    holder.do("on_finish", Finish(outcome="stopped"))
    row = fresh(running)
    assert (row.status, row.samples_count, row.avg_score) == ("CANCELLED", 2, 0.5), "what is there is kept, and summed up"


def test_one_that_ended_early_goes_on_under_its_id_with_what_it_lacks(client, ann, pool):
    evaluation = make_evaluation(ann, num_examples=3)
    path = f"{HOSTED}/{evaluation.id}/resume"
    assert client.patch(path).status_code == 409, "it waits already"
    holder = Holder(lease_evaluation(pool))
    holder.do("on_heartbeat", Heartbeat())
    client.patch(f"{HOSTED}/{evaluation.id}/cancel")
    holder.rollouts(1, 1.0, None)
    holder.do("on_finish", Finish(outcome="stopped"))
    resumed = client.patch(path).json()
    assert (resumed["status"], resumed["total_samples"], resumed["completed_at"]) == ("PENDING", 2, None)
    holder = Holder(lease_evaluation(pool))
    assert holder.do("attempt_spec").done == [(0, 0)]
    assert holder.do("on_heartbeat", Heartbeat()).desired == "run"
    holder.rollouts(1, 0.0, 0.5, first_task=1)
    holder.do("on_finish", Finish(outcome="completed"))
    row = fresh(evaluation)
    assert (row.status, row.samples_count, row.avg_score) == ("COMPLETED", 3, 0.5)
    assert client.patch(path).status_code == 409, "it is complete"


def test_an_empty_wallet_resumes_nothing(client, ann):
    evaluation = make_evaluation(ann)
    client.patch(f"{HOSTED}/{evaluation.id}/cancel")
    everything = UsageIn(meter=Meter.ROLLOUT_OUTPUT_TOKENS, sequence="all of it", quantity=10**12, at=datetime.now(UTC))
    with acting_as_system():
        subject = {"subject_kind": "eval", "subject_id": evaluation.id, "segment": 1, "model": "tiny"}
        record_usage(team_id=ann.team_id, events=[everything], **subject)
    assert client.patch(f"{HOSTED}/{evaluation.id}/resume").status_code == 402
    assert fresh(evaluation).status == "CANCELLED"


def test_an_evaluation_that_runs_out_of_time_is_ended_and_fenced(ann, pool, shift_clock):
    evaluation = make_evaluation(ann, timeout_minutes=10)
    Holder(lease_evaluation(pool)).do("on_heartbeat", Heartbeat())
    grace, moment = timedelta(seconds=20), fresh(evaluation).started_at
    with acting_as_system():
        assert queries.overdue(moment + timedelta(minutes=10), grace=grace) == []
        assert queries.overdue(moment + timedelta(minutes=11), grace=grace) == [evaluation.id]
        lifecycle.end_overdue(evaluation.id)
        assert live_lease("eval", evaluation.id) is None
    assert fresh(evaluation).status == "TIMEOUT"


def test_a_pushed_evaluation_takes_samples_until_it_is_finalized(client, ann):
    release = make_release(ann, "rules")
    body = {"name": "mine", "environments": [{"id": release.environment_id}], "model_name": "m", "metadata": {"num_examples": 2}}
    made = client.post(f"{EVALUATIONS}/", body).json()
    path = f"{EVALUATIONS}/{made['evaluation_id']}"
    samples = [{"example_id": 0, "reward": 1.0, "anything": {"deep": 1}}, {"example_id": 1, "reward": "broken"}]
    pushed = client.post(f"{path}/samples", {"samples": samples}).json()
    assert (pushed["samples_pushed"], pushed["status"]) == (2, "RUNNING")
    done = client.post(f"{path}/finalize", {"metrics": {"avg": 1}}).json()
    assert (done["status"], done["total_samples"], done["avg_score"]) == ("COMPLETED", 2, 1.0)
    assert done["viewer_url"].endswith(made["evaluation_id"])
    assert client.get(f"{path}/samples").json()["samples"] == samples
    assert client.post(f"{path}/samples", {"samples": []}).status_code == 409
    assert client.put(path, {"description": "later"}, content_type="application/json").json()["description"] == "later"
    listed = client.get(f"{EVALUATIONS}/", {"environment_name": "ann-lab/rules"}).json()
    assert (listed["total"], listed["evaluations"][0]["evaluation_id"]) == (1, made["evaluation_id"])
    assert client.delete(path).status_code == 200 and client.get(path).status_code == 404


def test_a_push_that_is_repeated_changes_nothing(client, ann):
    release = make_release(ann, "rules")
    made = client.post(f"{EVALUATIONS}/", {"name": "m", "environments": [{"id": release.environment_id}]}).json()
    path = f"{EVALUATIONS}/{made['evaluation_id']}"
    by_content = [{"example_id": 0, "reward": 1.0}, {"example_id": 0, "reward": 0.0}]
    broken = {"example_id": 1, "rollout_number": 0, "reward": 0.0, "error": "timeout"}
    for _ in range(2):
        assert client.post(f"{path}/samples", {"samples": [*by_content, broken]}).json()["samples_pushed"] == 3
    found = client.get(path).json()
    assert (found["total_samples"], found["statistics"]["missing"]) == (3, {"failed": 1})
    assert found["statistics"]["mean"] == 0.5, "a harness's 0 for what broke is no reward"
    mended = {"example_id": 1, "rollout_number": 0, "reward": 1.0, "timing": {"total_ms": 1500}}
    client.post(f"{path}/samples", {"samples": [mended, {"example_id": 0, "reward": 0.5}]})
    found = client.post(f"{path}/finalize", {}).json()
    assert (found["total_samples"], found["avg_score"]) == (4, 0.625)
    with acting_as_system():
        rows = EvaluationSample.objects.order_by("position").values_list("example", "rollout", "duration_s")
        assert list(rows) == [("0", 0, None), ("0", 1, None), ("1", 0, 1.5), ("0", 2, None)]


def test_an_evaluation_can_be_pushed_for_a_run_and_needs_something_it_is_of(client, ann):
    run = make_run(ann)
    assert client.post(f"{EVALUATIONS}/", {"name": "x", "run_id": run.id}).json()["run_id"] == run.id
    assert client.post(f"{EVALUATIONS}/", {"name": "x"}).status_code == 422


def test_foreign_and_absent_look_the_same(ann, client_of):
    evaluation = make_evaluation(ann)
    stranger, nothing = client_of(make_funded_member()), new_id()
    paths = [("get", EVALUATIONS, ""), ("get", EVALUATIONS, "/samples"), ("patch", HOSTED, "/cancel"), ("get", HOSTED, "/logs")]
    for verb, base, suffix in paths:
        foreign, absent = (getattr(stranger, verb)(f"{base}/{one}{suffix}") for one in (evaluation.id, nothing))
        assert foreign.status_code == absent.status_code == 404
        assert without_names(foreign, evaluation.id) == without_names(absent, nothing)


def test_the_mean_comes_with_its_confidence_and_samples_are_found_by_reward(client, ann):
    release = make_release(ann, "rules")
    made = client.post(f"{EVALUATIONS}/", {"name": "m", "environments": [{"id": release.environment_id}]}).json()
    path = f"{EVALUATIONS}/{made['evaluation_id']}"
    assert client.get(path).json()["statistics"] is None
    client.post(f"{path}/samples", {"samples": [{"example_id": n, "reward": reward} for n, reward in enumerate([0, 0, 1, 1])]})
    found = client.get(path).json()["statistics"]
    assert (found["rewards_count"], found["mean"]) == (4, 0.5)
    # The standard deviation of 0, 0, 1, 1 is √⅓, its standard error half of that; t with three degrees is 3.18245.
    assert found["ci_high"] - found["mean"] == pytest.approx(3.18245 * (1 / 3) ** 0.5 / 2, abs=1e-4)
    assert found["pass_rates"][0]["any_of"] == 0.5
    strict = client.get(path, {"pass_threshold": 1.5}).json()["statistics"]
    assert strict["pass_rates"][0]["any_of"] == 0.0
    assert sum(one["count"] for one in found["bins"]) == 4
    low = client.get(f"{path}/samples", {"max_reward": 0.5}).json()
    assert (low["total"], [sample["example_id"] for sample in low["samples"]]) == (2, [0, 1])
    assert client.get(f"{path}/samples", {"min_reward": "nan"}).status_code == 422
