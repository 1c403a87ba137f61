"""What a run's pages read: log, metrics, samples, progress, distributions, checkpoints, as its holder reported them."""

import base64
import hashlib
import json

import pytest
import zstandard

from tests.factories.reports import log, step, summary
from tests.factories.runs import DIGEST
from tests.fixtures.reported_run import client, get, report, run
from trainer.contracts.internal import CheckpointReport, RolloutBatch, RolloutSummary

__all__ = ["client", "report", "run"]
pytestmark = pytest.mark.django_db
MESSAGES = [{"role": "user", "content": "3+4?"}, {"role": "assistant", "content": "sum 7"}]


def batch(number: int, *summaries: RolloutSummary, tag: str = "train") -> RolloutBatch:
    records = [{"rollout_id": one.rollout_id, "traces": [{"trainable": True, "messages": MESSAGES}]} for one in summaries]
    body = zstandard.compress("\n".join(map(json.dumps, records)).encode())
    encoded, digest = base64.b64encode(body).decode(), hashlib.sha256(body).hexdigest()
    return RolloutBatch(step=number, tag=tag, summaries=list(summaries), body_zstd_b64=encoded, body_sha256=digest)


def lines(answer) -> list[dict]:
    return [json.loads(line) for line in answer.json()["logs"].splitlines()]


def test_the_log_is_json_lines_that_can_be_filtered(client, run, report):
    report(events=[log(1, "runner ready", component="environment"), log(2, "slow rollout r7", level="warning"), log(3, "done")])
    assert {"timestamp", "level", "message"} <= set(lines(get(client, run, "logs"))[0])
    assert [one["message"] for one in lines(get(client, run, "logs", level="warning"))] == ["slow rollout r7"]
    assert [one["message"] for one in lines(get(client, run, "logs", search="READY"))] == ["runner ready"]
    assert [one["message"] for one in lines(get(client, run, "logs", search=r"r\d+$", regex="true"))] == ["slow rollout r7"]
    assert [one["message"] for one in lines(get(client, run, "env-server-logs"))] == ["runner ready"]
    assert [one["message"] for one in lines(get(client, run, "logs", component="env-server"))] == ["runner ready"]
    assert len(lines(get(client, run, "logs", tail_lines=1))) == 1


def test_lines_of_one_environment_can_be_chosen(client, run, report):
    """The kind: one environment of several is broken, and its words are lost among the others'."""
    texts = {"ann/rules": "ready", "ann/deep": "No module named 'harbor'"}
    events = [log(number, text, component="environment") for number, text in enumerate(texts.values(), 1)]
    for event, name in zip(events, texts, strict=True):
        event.payload["env_name"] = name
    report(events=events)
    assert [one["message"] for one in lines(get(client, run, "logs", env_name="ann/deep"))] == ["No module named 'harbor'"]
    assert len(lines(get(client, run, "logs", env_name="deep"))) == 1
    assert [one["env_name"] for one in lines(get(client, run, "env-server-logs"))] == ["ann/rules", "ann/deep"]


def test_a_broken_expression_is_refused_by_name(client, run, report):
    report(events=[log(1, "x")])
    answer = get(client, run, "logs", search="(", regex="true")
    assert answer.status_code == 422 and answer.json()["detail"][0]["loc"] == ["query", "search"]


def test_following_by_cursor_has_no_gap_and_no_repeat(client, run, report):
    messages, cursor = [], 0
    for round_number in range(3):
        report(events=[log(round_number * 2 + 1, f"{round_number}a"), log(round_number * 2 + 2, f"{round_number}b")])
        page = get(client, run, "logs", cursor=cursor, search="", tail_lines=100)
        messages += [one["message"] for one in lines(page) if len(one["message"]) == 2]
        cursor = page.json()["cursor"]
    assert messages == ["0a", "0b", "1a", "1b", "2a", "2b"]
    assert get(client, run, "logs", cursor=cursor).json() == {"logs": "", "cursor": cursor}


def test_metrics_are_one_row_per_step(client, run, report):
    report(events=[step(number, number, number / 10) for number in (1, 2, 3)])
    metrics = get(client, run, "metrics", min_step=2).json()["metrics"]
    assert [(row["step"], row["reward"], row["version"]) for row in metrics] == [(2, 0.2, 2), (3, 0.3, 3)]
    assert client.get(f"/api/v1/rft/runs/{run.id}").json()["run"]["step"] == 3


def test_samples_show_rollouts_with_their_messages(client, run, report):
    report(rollouts=batch(1, summary(0, 1.0, 0.5), summary(1, 0.0, -0.5)))
    report(rollouts=batch(1, summary(2, 0.5, 0.0), tag="eval/rules"))
    page = get(client, run, "samples", step=1, limit=2).json()
    assert (page["total"], page["total_pages"], page["run_id"]) == (3, 2, run.id)
    assert [sample["rollout_id"] for sample in page["samples"]] == ["r0", "r1"]
    assert page["samples"][0]["messages"] == MESSAGES and page["samples"][0]["reward"] == 1.0
    assert get(client, run, "samples", step=1, tag="train").json()["total"] == 2
    assert get(client, run, "samples", step=9).json()["samples"] == []
    assert get(client, run, "samples").status_code == 422


def test_progress_names_the_steps_that_can_be_asked_for(client, run, report):
    report(rollouts=batch(1, summary(0, 1.0, 0.5)), events=[step(1, 1, 0.5)])
    progress = get(client, run, "progress").json()
    assert (progress["latestStep"], progress["stepsWithSamples"], progress["stepsWithDistributions"]) == (1, [1], [1])


@pytest.mark.parametrize(("kind", "low", "high"), [("reward", 0.0, 1.0), ("advantage", -0.5, 0.5)])
def test_a_distribution_counts_each_rollout_once(client, run, report, kind, low, high):
    report(rollouts=batch(1, *(summary(index, index % 2, index % 2 - 0.5) for index in range(8))))
    found = get(client, run, "distributions", type=kind).json()
    assert found["step"] == 1 and sum(entry["count"] for entry in found["bins"]) == 8
    assert (found["bins"][0]["start"], found["bins"][-1]["end"]) == (low, high)


def test_checkpoints_and_env_servers_are_listed(client, run, report):
    report(checkpoint=CheckpointReport(step=5, path="runs/x/checkpoints/step-5", digest=DIGEST, size_bytes=7))
    (checkpoint,) = get(client, run, "checkpoints").json()["checkpoints"]
    assert (checkpoint["step"], checkpoint["rftRunId"], checkpoint["sizeBytes"]) == (5, run.id, 7)
    (server,) = get(client, run, "env-servers").json()["env_servers"]
    assert (server["env_index"], server["status"]) == (0, "Running")
    assert run.config["environments"][0]["id"].split("/")[1:] == [server["env_name"]], "`NAME/INDEX` leaves no room for an owner"
