"""What a row of a trainer elsewhere becomes, and what a row that is odd does not break."""

import json

import pytest

from controlplane.ingest import records
from controlplane.ingest.records import by_tag, samples_of
from tests.factories.parquet import sample

CALL = {"function": {"name": "add", "arguments": '{"a": 1}'}}


def one(**columns):
    return samples_of([sample(4, 0.5, **columns)], step=3, upload="u")[0]


def test_a_row_is_a_summary_and_a_record_with_its_messages():
    found = one(said="the sum is 7")
    summary = found.summary
    assert (summary.rollout_id, summary.group_id, summary.environment, summary.task) == ("step-3-4", "ada/sums/4", "ada/sums", 4)
    assert (summary.reward, summary.advantage, summary.metrics, summary.duration_s) == (0.5, 0.5, {"exact": 1.0}, 1.5)
    assert (summary.turns, summary.input_tokens, summary.output_tokens, summary.billed) == (1, 11, 3, False)
    assert (summary.task_preview, summary.preview, found.tag) == ("question 4", "the sum is 7", "train")
    assert [message["role"] for message in found.record["traces"][0]["messages"]] == ["user", "assistant"]
    assert (found.record["answer"], found.record["info"]) == ("7", {"level": 1})


@pytest.mark.parametrize(
    ("columns", "messages"),
    [
        ({"prompt": "2+2?", "completion": "4"}, [("user", "2+2?"), ("assistant", "4")]),
        ({"prompt": '[{"role": "system", "content": "s"}]', "completion": "4"}, [("system", "s"), ("assistant", "4")]),
        (
            {"completion": '[{"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "image"}]}]'},
            [("assistant", "a")],
        ),
        ({"completion": None}, []),
        ({"completion": "[1, 2]"}, []),
        ({"completion": "[" * 2000}, [("assistant", "[" * 2000)]),
    ],
    ids=["texts", "a prompt of messages", "parts", "nothing", "no messages", "nested without end"],
)
def test_conversations_come_in_every_spelling(columns, messages):
    found = one(**columns).record["traces"][0]["messages"]
    assert [(message["role"], message["content"]) for message in found] == messages


def test_tool_calls_are_shown_however_they_are_spelled():
    flat = {"name": "add", "arguments": {"a": 1}}
    told = json.dumps([{"role": "assistant", "content": None, "tool_calls": [CALL, flat, "no"]}])
    calls = one(completion=told).record["traces"][0]["messages"][0]["tool_calls"]
    assert calls == [{"name": "add", "arguments": '{"a": 1}'}] * 2


@pytest.mark.parametrize("reward", [None, float("nan"), float("inf")])
def test_a_reward_that_is_no_number_is_none(reward):
    found = samples_of([sample(1, reward)], step=3, upload="u")[0].summary
    assert (found.reward, found.state) == (None, "incomplete")


def test_what_no_database_stores_is_replaced():
    found = one(said="a\0b", env_name="x\0y", tag="t\0")
    assert "\0" not in json.dumps(found.record) + found.summary.model_dump_json() + found.tag


def test_samples_add_up_and_one_that_comes_again_takes_its_own_place():
    first = samples_of([sample(1, 0.0), sample(2, 0.0)], step=3, upload="a")
    again = samples_of([sample(2, 1.0), sample(3, 1.0)], step=3, upload="b")
    kept = records.kept_samples("train", [one.record for one in first])
    assert [one.summary for one in kept] == [one.summary for one in first]
    assert [(one.summary.task, one.summary.reward) for one in records.merged(kept, again)] == [(1, 0.0), (2, 1.0), (3, 1.0)]


def test_tags_are_kept_apart_and_are_not_without_end(monkeypatch):
    monkeypatch.setattr(records, "TAGS_MAX", 2)
    rows = [sample(1, 1.0, tag=tag) for tag in ("", "eval", "third", "")]
    assert {tag: len(part) for tag, part in by_tag(samples_of(rows, step=3, upload="u")).items()} == {"train": 2, "eval": 2}
