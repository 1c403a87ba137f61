"""Datasets over HTTP, on a real database and object store: uploading, refusing by line, whose they are, runs that name them."""

from urllib.parse import urlsplit

import pytest
from django.test import override_settings

from controlplane.audit.models import AuditEvent
from controlplane.core.objects import store
from controlplane.core.tenancy import acting_as_system, acting_for
from controlplane.datasets.models import Dataset
from controlplane.runs.attempts import RunSubject
from controlplane.runs.models import Run
from tests.data.datasets.golden import BAD_FILES, GOLDEN
from tests.factories.adapters import make_checkpoint
from tests.factories.answers import content_of
from tests.factories.datasets import EXCHANGE, declaration, lines, make_dataset
from tests.factories.releases import make_release
from tests.factories.runs import fund, holder_client, lease_run, make_pool
from tests.factories.teams import make_member

pytestmark = pytest.mark.django_db
DATASETS = "/api/v1/datasets"
RUNS = "/api/v1/rft/runs"


@pytest.fixture
def ada():
    return make_member("ada")


@pytest.fixture
def client(client_of, ada):
    return client_of(ada)


def upload(client, content: bytes, name: str = "sums", sent: bytes | None = None, **more):
    made = client.post(DATASETS, declaration(content, name, **more))
    assert made.status_code == 200, made.content
    parts = urlsplit(made.json()["upload_url"])
    put = client.put(f"{parts.path}?{parts.query}", content if sent is None else sent, content_type="application/octet-stream")
    assert put.status_code == 200
    return client.post(f"{DATASETS}/{made.json()['id']}/finalize")


def test_a_file_is_checked_kept_listed_and_reported(client):
    content = lines(EXCHANGE, b"not json\n", EXCHANGE)
    answer = upload(client, content, dropped_max=0.5)
    assert answer.status_code == 200, answer.content
    report = answer.json()["report"]
    assert (report["rows"], report["kept"], report["dropped"]) == (3, 2, 1)
    assert report["problems"] == [{"line": 2, "reason": "not JSON: Expecting value at column 1"}]
    found = client.get(f"{DATASETS}/sums").json()
    assert found == answer.json() and found["dataset"]["kind"] == "chat"
    assert [row["name"] for row in client.get(DATASETS).json()["datasets"]] == ["sums"]


def test_too_many_dropped_rows_refuse_the_file_by_line_and_leave_nothing(client):
    answer = upload(client, lines(EXCHANGE, {"messages": [{"role": "robot", "content": "x"}]}, {"text": "x"}))
    assert answer.status_code == 422
    problems = {problem["loc"][-1]: problem["msg"] for problem in answer.json()["detail"]}
    assert "messages.0.role" in problems[2] and problems[3].startswith("a row of text in a file of chat rows")
    assert problems["file"].startswith("1 of 3 rows are kept, 2 dropped")
    assert client.get(DATASETS).json()["total"] == 0
    with acting_as_system():
        assert not Dataset.objects.exists()


@pytest.mark.parametrize(
    ("content", "reason"),
    [(b"\xef\xbb\xbf" + lines(EXCHANGE), "byte order mark"), (b"\n\n", "nothing to learn from")],
)
def test_a_file_that_is_wrong_as_a_whole_is_refused(client, content: bytes, reason: str):
    answer = upload(client, content)
    assert answer.status_code == 422 and reason in answer.json()["detail"][0]["msg"]


@pytest.mark.parametrize(("name", "line", "reason"), BAD_FILES)
def test_a_golden_bad_file_is_refused_by_line_before_a_run_may_name_it(client, ada, name: str, line: int, reason: str):
    """Case 9: broken JSON, a wrong role, a byte order mark, two schemas."""
    make_pool()
    fund(ada)
    answer = upload(client, (GOLDEN / f"{name}.jsonl").read_bytes())
    assert answer.status_code == 422
    told = " ".join(problem["msg"] for problem in answer.json()["detail"])
    assert f"line {line}: " in told and reason in told
    assert client.get(DATASETS).json()["total"] == 0
    assert client.post(RUNS, run_body()).status_code == 422
    assert upload(client, (GOLDEN / "good.jsonl").read_bytes()).status_code == 200, "its name is free"
    assert client.post(RUNS, run_body()).status_code in (200, 201)


def test_a_dataset_that_was_announced_and_not_finalized_is_no_runs(client, ada):
    """Case 9: a file counts once it was looked at."""
    make_pool()
    fund(ada)
    assert client.post(DATASETS, declaration((GOLDEN / "good.jsonl").read_bytes(), "sums")).status_code == 200
    assert client.post(RUNS, run_body()).status_code == 422


def test_another_file_than_the_declared_one_is_refused(client):
    content = lines(EXCHANGE)
    answer = upload(client, content, sent=content.replace(b"1+1", b"1+2"))
    assert answer.status_code == 422 and "not the file that was declared" in answer.json()["detail"][0]["msg"]


def test_a_name_stands_for_one_content(client):
    content = lines(EXCHANGE)
    assert upload(client, content).status_code == 200
    assert client.post(DATASETS, declaration(content)).json()["upload_url"] is None
    other = client.post(DATASETS, declaration(lines(EXCHANGE, EXCHANGE)))
    assert (other.status_code, other.json()["code"]) == (409, "dataset_exists")


def test_an_upload_that_never_ended_gives_its_name_back(client):
    content = lines(EXCHANGE)
    assert client.post(DATASETS, declaration(content)).status_code == 200
    assert upload(client, lines(EXCHANGE, EXCHANGE)).status_code == 200


def test_a_dataset_is_its_teams_alone(client_of, ada):
    dataset = make_dataset(ada)
    stranger = client_of(make_member("bob"))
    assert stranger.get(f"{DATASETS}/{dataset.id}").status_code == 404
    assert stranger.get(DATASETS).json()["datasets"] == []
    assert stranger.post(DATASETS, declaration(lines(EXCHANGE))).status_code == 200, "names are each team's own"


def test_a_deleted_dataset_is_gone_with_its_file_and_its_name_is_free(client, ada):
    content = lines(EXCHANGE)
    first, second = make_dataset(ada, content), make_dataset(ada, content, name="again")
    assert client.delete(f"{DATASETS}/sums").status_code == 204
    assert client.get(f"{DATASETS}/sums").status_code == client.delete(f"{DATASETS}/sums").status_code == 404
    assert store().read(first.object_key) == content, "another name stands for the same file"
    assert client.delete(f"{DATASETS}/{second.id}").status_code == 204
    assert store().stat(first.object_key) is None
    with acting_for(ada.team_id):
        told = AuditEvent.objects.filter(action="dataset.deleted").order_by("created_at")
        assert [(event.object_id, event.detail["name"]) for event in told] == [(first.id, "sums"), (second.id, "again")]
    assert upload(client, lines(EXCHANGE, EXCHANGE)).status_code == 200


def test_what_a_run_learns_from_is_deleted_only_once_the_run_has_ended(client, ada):
    make_pool()
    fund(ada)
    make_dataset(ada)
    run = client.post(RUNS, run_body()).json()["run"]
    refused = client.delete(f"{DATASETS}/sums")
    assert (refused.status_code, refused.json()["code"]) == (409, "dataset_in_use")
    assert f"{run['name']} ({run['id']})" in refused.json()["detail"]
    assert client.put(f"{RUNS}/{run['id']}/stop").status_code == 200
    assert client.delete(f"{DATASETS}/sums").status_code == 204
    again = client.put(f"{RUNS}/{run['id']}/restart")
    assert again.status_code == 409 and "'sums' that the run learns from was deleted" in again.json()["detail"]
    make_dataset(ada)
    assert client.put(f"{RUNS}/{run['id']}/restart").status_code == 200, "the same file under the same name will do"


def run_body(**more) -> dict:
    return {"model": {"name": "tiny"}, "datasets": [{"id": "sums"}], "batch_size": 4, **more}


def test_a_run_of_a_dataset_alone_pins_its_content_and_hands_it_to_its_holder(client, ada):
    pool = make_pool()
    fund(ada)
    dataset = make_dataset(ada)
    answer = client.post(RUNS, run_body())
    assert answer.status_code in (200, 201), answer.content
    granted = lease_run(pool)
    with acting_as_system():
        run = Run.objects.get(team=ada.actor.team)
        assert run.config["datasets"][0]["sha256"] == dataset.sha256 and run.name.startswith("sums-")
        spec = RunSubject().attempt_spec(run, granted.lease)
    assert [one.sha256 for one in spec.datasets] == [dataset.sha256] and spec.releases == []


@pytest.mark.parametrize("taken", ["absent", "foreign"])
def test_a_run_cannot_name_what_its_team_does_not_have(client, ada, taken: str):
    make_pool()
    fund(ada)
    if taken == "foreign":
        make_dataset(make_member("bob"))
    answer = client.post(RUNS, run_body())
    assert answer.status_code == 422
    (problem,) = answer.json()["detail"]
    assert problem["loc"] == ["body", "datasets", 0, "id"] and problem["msg"] == "There is no dataset 'sums'."


def test_a_run_needs_something_to_learn_from(client, ada):
    make_pool()
    fund(ada)
    answer = client.post(RUNS, {"model": {"name": "tiny"}})
    assert answer.status_code == 422 and "at least one environment or dataset" in answer.content.decode()


def test_only_the_holder_of_a_run_reads_its_files(client, ada):
    pool = make_pool()
    fund(ada)
    content = lines(EXCHANGE)
    make_dataset(ada, content)
    make_dataset(ada, lines(EXCHANGE, EXCHANGE), name="others")
    client.post(RUNS, run_body())
    holder = holder_client(lease_run(pool).token)
    with override_settings(ROOT_URLCONF="controlplane.urls_internal"):
        spec = holder.get("/internal/v1/attempt").json()
        assert content_of(holder.get("/internal/v1/datasets/0")) == content
        assert holder.get("/internal/v1/datasets/1").status_code == 404
        assert holder_client("nobody").get("/internal/v1/datasets/0").status_code == 401
    assert [(one["name"], one["kind"]) for one in spec["datasets"]] == [("sums", "chat")]


def test_a_run_goes_on_from_what_a_dataset_taught(client, ada):
    """SFT → RL by configuration: the checkpoint of the one begins the other."""
    make_pool()
    fund(ada)
    make_dataset(ada)
    taught = client.post(RUNS, run_body()).json()["run"]["id"]
    with acting_for(ada.team_id):
        checkpoint = make_checkpoint(ada, run=Run.objects.get(pk=taught), step=4)
        release = make_release(ada)
        body = {"model": {"name": "tiny"}, "environments": [{"id": release.environment.slug}], "checkpoint_id": checkpoint.id}
    answer = client.post(RUNS, body)
    assert answer.status_code in (200, 201), answer.content
    with acting_for(ada.team_id):
        assert Run.objects.get(pk=answer.json()["run"]["id"]).init_from == checkpoint.path
