"""A trainer that is not ours reports into a run: the whole way of a public one, what is refused, what our pages read of it."""

from datetime import timedelta
from urllib.parse import urlsplit

import pytest

from controlplane.core import clock
from controlplane.core.objects import store
from controlplane.core.tenancy import acting_as_system
from controlplane.ingest import services
from controlplane.runs.models import Run
from controlplane.runs.queries import leased_without_lease
from tests.factories.parquet import parquet_file, sample
from tests.factories.runs import fund, make_funded_member, make_pool, make_release, make_run, run_body
from tests.factories.teams import ApiClient, make_member

pytestmark = pytest.mark.django_db
RFT = "/api/v1/rft"
TOLD = {
    "base_model": "org/some-8b",
    "max_steps": 200,
    "batch_size": 512,
    "rollouts_per_example": 16,
    "seq_len": 65_536,
    "environments": [{"id": "ada/sums", "more": 1}],
    "run_config": {"trainer": {"optim": {"lr": 1e-6}}, "datasets": ["a"]},
    "name": "far-away",
    "a_later_version_sends": "more",
}


@pytest.fixture
def ada():
    return make_member("ada")


@pytest.fixture
def client(ada):
    return ApiClient(ada)


@pytest.fixture
def run_id(client) -> str:
    made = client.post(f"{RFT}/external-runs", TOLD)
    assert made.status_code == 201, made.content
    return made.json()["run"]["id"]


def upload(client, run_id: str, step: int, content: bytes) -> tuple[dict, str]:
    """Presign and PUT, as a trainer does it; the body to confirm with."""
    signed = client.post(f"{RFT}/samples/presign", {"run_id": run_id, "step": step}).json()["data"]
    parts = urlsplit(signed["presignedUrl"])
    put = ApiClient().put(f"{parts.path}?{parts.query}", content, content_type="application/parquet")
    assert put.status_code == 200, put.content
    return {"run_id": run_id, "step": step, "s3_key": signed["s3Key"]}


def report(client, run_id: str, **metrics):
    return client.post(f"{RFT}/metrics", {"run_id": run_id, "metrics": metrics})


def test_the_whole_way_of_a_trainer_shows_as_a_run_of_ours(client, run_id):
    for step in range(1, 4):
        assert report(client, run_id, **{"step": step, "reward/all/mean": step / 4, "loss": 0.5}).status_code == 200
        assert report(client, run_id, step=step, throughput=100.0).status_code == 200
    asked = upload(client, run_id, 3, parquet_file(*(sample(number, number / 4) for number in range(4))))
    assert client.post(f"{RFT}/samples/confirm", asked).json()["accepted"] == 4

    run = client.get(f"{RFT}/runs/{run_id}").json()["run"]
    assert (run["kind"], run["status"], run["step"], run["maxSteps"]) == ("EXTERNAL", "RUNNING", 3, 200)
    assert (run["name"], run["baseModel"], run["runConfig"]) == ("far-away", "org/some-8b", TOLD["run_config"])
    assert run["usage"]["totalMicrousd"] == 0
    curves = client.get(f"{RFT}/runs/{run_id}/curves").json()
    assert (curves["steps"], curves["series"]["reward"]) == ([1, 2, 3], [0.25, 0.5, 0.75])
    assert curves["series"]["throughput"] == [100.0] * 3 and curves["series"]["loss"] == [0.5] * 3
    assert client.get(f"{RFT}/runs/{run_id}/progress").json()["stepsWithSamples"] == [3]
    shown = client.get(f"{RFT}/runs/{run_id}/samples?step=3").json()["samples"]
    assert [(row["reward"], row["problem_id"], row["messages"][1]["content"]) for row in shown][3] == (0.75, 3, "7")
    assert sum(one["count"] for one in client.get(f"{RFT}/runs/{run_id}/distributions").json()["bins"]) == 4
    group = client.get(f"{RFT}/runs/{run_id}/groups?step=3").json()["groups"][0]
    found = client.get(f"{RFT}/runs/{run_id}/rollouts/{group['rollouts'][0]['id']}")
    assert found.status_code == 200 and found.json()["traces"][0]["messages"][0]["content"] == "question 0"
    assert client.get(f"{RFT}/runs/{run_id}/config").json() == {"toml": "", "changed": []}
    assert [row["id"] for row in client.get(f"{RFT}/runs").json()["runs"]] == [run_id]

    assert client.post(f"{RFT}/finalize", {"run_id": run_id, "summary": {"reward": 0.75}}).status_code == 200
    ended = client.put(f"{RFT}/external-runs/{run_id}/status", {"status": "failed"})
    assert ended.status_code == 200 and ended.json()["run"]["status"] == "COMPLETED", "the first word counts"
    assert "summary of the trainer: reward" in client.get(f"{RFT}/runs/{run_id}/logs").json()["logs"]


def test_the_key_may_come_as_x_api_key(ada):
    plain = ApiClient()
    made = plain.post(f"{RFT}/external-runs", {}, headers={"x-api-key": ada.key})
    assert made.status_code == 201 and made.json()["run"]["baseModel"] == "unknown"
    assert plain.post(f"{RFT}/external-runs", {}, headers={"x-api-key": ada.key[:-1]}).json()["code"] == "malformed_key"
    assert plain.post(f"{RFT}/external-runs", {}).status_code == 401


def test_confirming_twice_is_once_and_files_of_a_step_add_up(client, run_id):
    asked = upload(client, run_id, 1, parquet_file(sample(1, 1.0), sample(2, 0.0)))
    first = client.post(f"{RFT}/samples/confirm", asked)
    assert first.json()["accepted"] == 2
    assert client.post(f"{RFT}/samples/confirm", asked).json() == first.json()
    with acting_as_system():
        assert store().stat(asked["s3_key"]) is None, "the upload goes once its rollouts are kept"
    more = upload(client, run_id, 1, parquet_file(sample(2, 0.5), sample(9, 0.5), sample(10, 1.0, tag="eval/sums")))
    assert client.post(f"{RFT}/samples/confirm", more).json()["accepted"] == 3
    rows = client.get(f"{RFT}/runs/{run_id}/samples?step=1").json()["samples"]
    assert [(row["problem_id"], row["reward"]) for row in rows] == [(1, 1.0), (2, 0.5), (9, 0.5), (10, 1.0)]
    assert client.get(f"{RFT}/runs/{run_id}/samples?step=1&tag=eval/sums").json()["total"] == 1


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("external-runs", {"base_model": "x" * 128}, "base_model"),
        ("external-runs", {"max_steps": -1}, "max_steps"),
        ("external-runs", {"batch_size": 0}, "batch_size"),
        ("external-runs", {"environments": [{"id": ""}]}, "environments.0.id"),
        ("external-runs", {"environments": [{"id": "a"}] * 65}, "environments"),
        ("external-runs", {"run_config": {"x": "a" * 2**20}}, "run_config"),
        ("external-runs", {"run_config": []}, "run_config"),
        ("metrics", {"metrics": {"loss": 1.0}}, ""),
        ("metrics", {"metrics": {"step": 1.5}}, ""),
        ("metrics", {"metrics": {"step": -1}}, ""),
        ("metrics", {"metrics": {"step": 10**12}}, ""),
        ("metrics", {"metrics": {"step": 1, "n" * 200: 1.0}}, "metrics"),
        ("metrics", {"metrics": {f"m{number}": 1 for number in range(2000)}}, "metrics"),
        ("metrics", {}, "metrics"),
        ("samples/presign", {"step": -1}, "step"),
        ("samples/presign", {"step": "one"}, "step"),
        ("samples/confirm", {"step": 1}, "s3_key"),
        ("samples/confirm", {"step": 1, "s3_key": "hub/wheels/other.whl"}, "s3_key"),
        ("finalize", {"exit_code": 2**40}, "exit_code"),
        ("finalize", {"summary": "done"}, "summary"),
    ],
)
def test_what_is_malformed_is_refused_by_field_and_leaves_nothing(client, run_id, path, body, field):
    with acting_as_system():
        before = list(Run.objects.values("id", "events_count"))
    answer = client.post(f"{RFT}/{path}", {"run_id": run_id} | body)
    assert answer.status_code == 422, answer.content
    assert any(".".join(map(str, one["loc"][1:])).startswith(field) for one in answer.json()["detail"]), answer.content
    with acting_as_system():
        assert list(Run.objects.values("id", "events_count")) == before


def test_what_is_no_number_is_left_out_and_named(client, run_id):
    answer = report(client, run_id, step=2.0, loss=0.5, note="warm", nothing=None, flag=True)
    assert answer.json() == {"accepted": 1, "left_out": ["flag", "note", "nothing"]}
    assert client.get(f"{RFT}/runs/{run_id}/metrics").json()["metrics"][0]["loss"] == 0.5


@pytest.mark.parametrize(("content", "code"), [(b"not parquet", "samples_refused"), (None, "not_uploaded")])
def test_a_file_that_is_none_or_never_came_is_told_and_leaves_nothing(client, run_id, content, code):
    if content is None:
        signed = client.post(f"{RFT}/samples/presign", {"run_id": run_id, "step": 1}).json()["data"]
        asked = {"run_id": run_id, "step": 1, "s3_key": signed["s3Key"]}
    else:
        asked = upload(client, run_id, 1, content)
    answer = client.post(f"{RFT}/samples/confirm", asked)
    assert answer.status_code in {409, 422} and answer.json()["code"] == code
    assert client.get(f"{RFT}/runs/{run_id}/progress").json()["stepsWithSamples"] == []


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("metrics", {"metrics": {"step": 1}}),
        ("samples/presign", {"step": 1}),
        ("samples/confirm", {"step": 1, "s3_key": "ingest/x"}),
        ("finalize", {}),
    ],
)
def test_reports_reach_no_run_of_others_and_none_that_is_trained_here(client, run_id, path, body):
    make_pool()
    ours, stranger = make_funded_member(), ApiClient(make_member())
    foreign = stranger.post(f"{RFT}/{path}", {"run_id": run_id} | body)
    absent = stranger.post(f"{RFT}/{path}", {"run_id": "c" + "0" * 24} | body)
    assert foreign.status_code == absent.status_code == 404
    hosted = ApiClient(ours).post(f"{RFT}/{path}", {"run_id": make_run(ours).id} | body)
    assert (hosted.status_code, hosted.json()["code"]) == (409, "run_not_external")


def test_a_run_that_was_stopped_here_takes_no_more_reports(client, run_id):
    assert client.put(f"{RFT}/runs/{run_id}/stop").json()["run"]["status"] == "STOPPED"
    late = report(client, run_id, step=1, loss=1.0)
    assert (late.status_code, late.json()["code"]) == (409, "run_ended")
    for verb in ("pause", "resume", "restart"):
        refused = client.put(f"{RFT}/runs/{run_id}/{verb}")
        assert refused.status_code == 409 and "trained elsewhere" in refused.json()["detail"]


@pytest.mark.parametrize(("exit_code", "status"), [(None, "COMPLETED"), (0, "COMPLETED"), (137, "FAILED")])
def test_an_exit_code_decides_how_a_run_ended(client, run_id, exit_code, status):
    ended = client.post(f"{RFT}/finalize", {"run_id": run_id, "exit_code": exit_code}).json()["run"]
    assert ended["status"] == status and bool(ended["failureAnalysis"]) == (status == "FAILED")


def test_nobody_here_takes_it_for_a_run_that_lost_its_holder_until_a_day_is_silent(client, run_id, monkeypatch):
    with acting_as_system():
        assert leased_without_lease(set()) == [] and services.end_silent_runs() == 0
        later = clock.now() + timedelta(hours=25)
        monkeypatch.setattr(services, "now", lambda: later)
        assert services.end_silent_runs() == 1
    run = client.get(f"{RFT}/runs/{run_id}").json()["run"]
    assert (run["status"], run["failureAnalysis"]["code"]) == ("FAILED", "external_failed")


def test_its_rollouts_are_no_record_to_learn_from(run_id, ada, client):
    make_pool()
    fund(ada)
    client.post(f"{RFT}/finalize", {"run_id": run_id})
    release = make_release(ada)
    environment = {"id": release.environment.slug, "replay": {"run_id": run_id}, "algorithm": {"id": "sft"}}
    refused = client.post(f"{RFT}/runs", run_body(release, environments=[environment]))
    assert refused.status_code == 422 and "trained elsewhere" in refused.content.decode()
