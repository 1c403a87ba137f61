"""`/internal/v1`: each report counts once, in the transaction that proves the lease, and a stale token writes nothing."""

import base64
import hashlib
import json
import random
from datetime import UTC, datetime

import pytest
import zstandard

from controlplane.adapters.models import Adapter
from controlplane.billing.price_book import publish_prices
from controlplane.billing.queries import subject_usage
from controlplane.core.tenancy import acting_as_system
from controlplane.pools.models import Lease
from controlplane.pools.services import take_back
from controlplane.runs import services
from controlplane.runs.models import Checkpoint, Rollout, Run, RunEvent, RunMetric
from controlplane.runs.queries import metrics_of
from controlplane.runs.schemas import render_run
from tests.factories.runs import DIGEST, fresh, holder_client, lease_run, make_funded_member, make_pool, make_run
from trainer.contracts.events import FailureCode, RunState
from trainer.contracts.internal import AttemptSpec, HeartbeatReply

pytestmark = [pytest.mark.django_db, pytest.mark.urls("controlplane.urls_internal")]
AT = datetime(2026, 11, 1, tzinfo=UTC).isoformat()


@pytest.fixture
def pool():
    publish_prices()
    return make_pool()


@pytest.fixture
def member(pool):
    return make_funded_member()


@pytest.fixture
def run(member) -> Run:
    return make_run(member, secrets=[{"key": "JUDGE_KEY", "value": "a-very-secret-value"}])


@pytest.fixture
def granted(pool, run):
    return lease_run(pool)


@pytest.fixture
def holder(granted):
    return holder_client(granted.token)


@pytest.fixture
def system():
    with acting_as_system():
        yield


def post(holder, name: str, **body):
    return holder.post(f"/internal/v1/{name}", json.dumps(body), content_type="application/json")


def event(sequence: int, kind: str = "log", step: int | None = None, **payload):
    return {"sequence": sequence, "kind": kind, "step": step, "at": AT, "payload": payload}


def step_event(sequence: int, step: int, reward: float):
    return event(sequence, "step", step, metrics={"reward": reward}, version=step, adapter_digest=DIGEST)


def rollout(index: int, **fields):
    return {
        "rollout_id": f"r{index}",
        "group_id": "g0",
        "environment": "ann/rules",
        "task": index,
        "state": "ok",
        "reward": 1.0,
        "advantage": 0.5,
        "trained": True,
        "policy_version_min": 0,
        "policy_version_max": 0,
        "turns": 1,
        "input_tokens": 10,
        "output_tokens": 5,
        "billed": True,
        "duration_s": 0.1,
    } | fields


def rollouts(step: int, *rows, tag: str = "train"):
    messages = [{"role": "user", "content": "3+4?"}, {"role": "assistant", "content": "sum 7"}]
    records = [{"rollout_id": row["rollout_id"], "traces": [{"trainable": True, "messages": messages}]} for row in rows]
    body = zstandard.compress("\n".join(json.dumps(record) for record in records).encode())
    return {
        "step": step,
        "tag": tag,
        "summaries": list(rows),
        "body_zstd_b64": base64.b64encode(body).decode(),
        "body_sha256": hashlib.sha256(body).hexdigest(),
    }


def usage(sequence: str, quantity: int = 1000, meter: str = "training_tokens"):
    return {"meter": meter, "sequence": sequence, "quantity": quantity, "at": AT}


def test_the_attempt_is_told_everything_it_needs(holder, granted, run):
    spec = AttemptSpec.model_validate(holder.get("/internal/v1/attempt").json())
    assert (spec.kind, spec.subject_id, spec.attempt, spec.segment, spec.fencing_token) == ("run", run.id, 1, 1, 1)
    assert spec.run is not None and spec.run.batch_size == 64
    assert spec.releases[0].environment == run.config["environments"][0]["id"]
    assert spec.pool is not None and spec.pool.name == "embedded"
    assert spec.secrets == {"JUDGE_KEY": "a-very-secret-value"}


def test_the_operator_chooses_what_holds_tenant_code(holder, settings):
    assert holder.get("/internal/v1/attempt").json()["sandbox_backend"] == "auto"
    settings.SANDBOX_BACKEND = "docker"
    assert holder.get("/internal/v1/attempt").json()["sandbox_backend"] == "docker"


def test_only_an_attempt_token_opens_the_api(db, member):
    assert holder_client("rsa_guess").get("/internal/v1/attempt").status_code == 401
    assert holder_client(member.key).get("/internal/v1/attempt").status_code == 401
    assert post(holder_client(""), "events", events=[]).status_code == 401


def test_work_in_flight_makes_a_starting_run_a_running_one(holder, run):
    assert HeartbeatReply.model_validate(post(holder, "heartbeat", phase="starting").json()).desired == "run"
    assert fresh(run).state == RunState.PENDING
    post(holder, "heartbeat", phase="rolling out", inflight=8)
    assert fresh(run).state == RunState.RUNNING and fresh(run).started_at is not None


def test_events_count_once_and_keep_their_order(holder, run, system):
    assert post(holder, "events", events=[event(2, message="b"), event(1, message="a")]).json() == {"accepted": 2}
    assert post(holder, "events", events=[event(2, message="b"), event(3, message="c")]).json() == {"accepted": 1}
    logged = RunEvent.objects.filter(run=run, kind="log").order_by("seq")
    assert [row.payload["message"] for row in logged] == ["a", "b", "c"]
    assert list(RunEvent.objects.filter(run=run).order_by("seq").values_list("seq", flat=True)) == list(
        range(1, fresh(run).events_count + 1)
    )


def test_a_secret_that_the_environment_prints_is_masked_when_written(holder, run, system):
    post(holder, "events", events=[event(1, message="key is a-very-secret-value!")])
    post(holder, "rollouts", **rollouts(1, rollout(0, error="401 for a-very-secret-value")))
    assert RunEvent.objects.get(run=run, kind="log").payload["message"] == "key is [redacted]!"
    assert Rollout.objects.get().summary["error"] == "401 for [redacted]"


def test_usage_is_charged_once_however_often_it_is_reported(holder, run, system):
    assert post(holder, "usage", events=[usage("1")]).json() == {"inserted": 1, "duplicates": 0}
    assert post(holder, "usage", events=[usage("1"), usage("2")]).json() == {"inserted": 1, "duplicates": 1}
    assert subject_usage("run", run.id).training.quantity == 2000


def test_rollouts_count_once_per_attempt_and_their_body_is_checked(holder, run, system):
    batch = rollouts(1, rollout(0), rollout(1))
    assert post(holder, "rollouts", **batch).json() == {"accepted": 2}
    assert post(holder, "rollouts", **batch).json() == {"accepted": 0}
    assert Rollout.objects.count() == 2
    refused = post(holder, "rollouts", **batch | {"step": 2, "body_sha256": DIGEST})
    assert refused.status_code == 422 and refused.json()["detail"][0]["loc"] == ["body", "body_sha256"]


def test_versions_and_checkpoints_are_recorded_once(holder, run, system):
    version = {"version": 1, "step": 1, "adapter_digest": DIGEST, "path": "p", "size_bytes": 9, "keep": True}
    checkpoint = {"step": 1, "path": "c", "digest": DIGEST, "size_bytes": 9}
    for _ in range(2):
        assert post(holder, "versions", **version).status_code == 204
        assert post(holder, "checkpoints", **checkpoint).status_code == 204
    assert Adapter.objects.filter(run=run).count() == Checkpoint.objects.filter(run=run).count() == 1


def test_a_finish_settles_the_run_and_gives_the_lease_back(holder, run):
    post(holder, "heartbeat", inflight=1)
    detail = {"module": "rules", "line": 7}
    assert (
        post(holder, "finish", outcome="failed", code="environment_broken", message="no module", detail=detail).status_code == 204
    )
    ended = fresh(run)
    assert (ended.state, ended.failure_code, ended.failure_detail) == (RunState.FAILED, "environment_broken", detail)
    assert post(holder, "heartbeat").json()["code"] == "stale_lease"


def test_a_run_that_ended_well_shows_no_error(holder, run):
    post(holder, "heartbeat", inflight=1)
    post(holder, "finish", outcome="completed", message="40 steps are done")
    shown = render_run(fresh(run))
    assert (shown.status, shown.error_message, shown.failure_analysis) == ("COMPLETED", None, None)


def test_a_failing_environment_pauses_its_run_with_the_reason(holder, run):
    post(holder, "heartbeat", inflight=1)
    post(holder, "finish", outcome="paused", code="environment_failing", message="60 % of the last 64 rollouts failed")
    paused = fresh(run)
    assert paused.state == RunState.PAUSED and "60 %" in paused.failure_message


@pytest.mark.parametrize("code", [FailureCode.TRAINER_UNREACHABLE, FailureCode.INFERENCE_UNREACHABLE])
def test_our_own_failures_cost_an_attempt_and_not_the_run(holder, run, code):
    post(holder, "finish", outcome="failed", code=code, message="gone")
    assert fresh(run).state == RunState.QUEUED and fresh(run).lost_attempts == 1


def test_what_the_owner_asks_reaches_the_holder(holder, run, member, client_of):
    post(holder, "heartbeat", inflight=1)
    with acting_as_system():
        services.pause_run(actor=member.actor, run_id=run.id)
    assert post(holder, "heartbeat").json()["desired"] == "pause"
    with acting_as_system():
        services.stop_run(actor=member.actor, run_id=run.id)
    assert post(holder, "heartbeat").json()["desired"] == "stop"
    post(holder, "finish", outcome="stopped", code="stopped_by_user", message="stopped")
    assert fresh(run).state == RunState.STOPPED


def test_an_empty_wallet_pauses_the_run(holder, run):
    post(holder, "heartbeat", inflight=1)
    post(holder, "usage", events=[usage("1", quantity=1_000_000_000)])
    reply = post(holder, "heartbeat").json()
    assert (reply["desired"], reply["code"]) == ("pause", "out_of_funds")
    post(holder, "finish", outcome="paused", code="out_of_funds", message=reply["reason"])
    assert fresh(run).state == RunState.PAUSED and fresh(run).failure_code == "out_of_funds"


def test_metrics_have_one_value_per_step_after_a_resume(pool, holder, granted, run, system):
    post(holder, "events", events=[step_event(step, step, reward=0.1) for step in range(1, 6)])
    take_back(granted.lease.id, reason="died", only_expired=False)
    second = holder_client(lease_run(pool).token)
    assert second.get("/internal/v1/attempt").json()["resume_step"] == 5
    post(second, "events", events=[step_event(1, 3, reward=0.9)])
    current = RunMetric.objects.filter(run=run, superseded_by__isnull=True).order_by("step")
    assert [(row.step, row.attempt) for row in current] == [(1, 1), (2, 1), (3, 2)]
    assert RunMetric.objects.filter(run=run).count() == 6, "the branch that was left is kept"
    assert fresh(run).step == 3


def test_wherever_attempts_resume_each_step_has_one_value_and_nothing_is_forgotten(pool, granted, run, system):
    """The kind: numbers beyond the step that a run was resumed from, which were ignored or doubled elsewhere."""
    rng, token, values, reported = random.Random(0), granted.token, {}, 0
    for attempt in range(1, 7):
        first = rng.randint(1, max(values, default=0) + 1)
        last = first + rng.randint(0, 4)
        events = [step_event(number, step, reward=attempt / 10) for number, step in enumerate(range(first, last + 1), 1)]
        post(holder_client(token), "events", events=events)
        values = {step: reward for step, reward in values.items() if step < first}
        values |= dict.fromkeys(range(first, last + 1), attempt / 10)
        reported += len(events)
        take_back(Lease.objects.get(released_at__isnull=True).id, reason="died", only_expired=False)
        token = lease_run(pool).token
    assert [(row.step, row.values["reward"]) for row in metrics_of(run)] == sorted(values.items())
    assert RunMetric.objects.filter(run=run).count() == reported


def test_a_later_attempt_replaces_the_rollouts_of_a_step(pool, holder, granted, run, system):
    post(holder, "rollouts", **rollouts(1, rollout(0, reward=0.0), rollout(1)))
    take_back(granted.lease.id, reason="died", only_expired=False)
    post(holder_client(lease_run(pool).token), "rollouts", **rollouts(1, rollout(7, reward=1.0)))
    assert [row.summary["rollout_id"] for row in Rollout.objects.all()] == ["r7"]


def everything_written() -> list[int]:
    with acting_as_system():
        return [model.objects.count() for model in (RunEvent, RunMetric, Rollout, Checkpoint, Adapter)]


@pytest.mark.parametrize("fenced_by", ["expiry", "restart", "stop"])
def test_a_stale_token_writes_nothing(fenced_by, pool, member, holder, granted, run, shift_clock):
    with acting_as_system():
        if fenced_by == "expiry":
            take_back(granted.lease.id, reason="silent", only_expired=False)
        elif fenced_by == "restart":
            services.restart_run(actor=member.actor, run_id=run.id)
        else:
            services.stop_run(actor=member.actor, run_id=run.id)
    before, state = everything_written(), fresh(run).state
    reports = {
        "heartbeat": {},
        "events": {"events": [step_event(1, 1, reward=1.0)]},
        "usage": {"events": [usage("1")]},
        "rollouts": rollouts(1, rollout(0)),
        "versions": {"version": 1, "step": 1, "adapter_digest": DIGEST, "path": "p", "size_bytes": 9, "keep": True},
        "checkpoints": {"step": 1, "path": "c", "digest": DIGEST, "size_bytes": 9},
        "finish": {"outcome": "completed"},
    }
    for name, body in reports.items():
        answer = post(holder, name, **body)
        assert (answer.status_code, answer.json()["code"]) == (409, "stale_lease"), name
    assert everything_written() == before and fresh(run).state == state
    with acting_as_system():
        assert subject_usage("run", run.id).lines == []
