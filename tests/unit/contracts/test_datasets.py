"""A dataset line by line: what is kept, and what its author is told of the rest."""

import io
import json
import tomllib

import pytest

from tests.fixtures.places import REPOSITORY
from trainer.contracts import datasets
from trainer.contracts.datasets import ChatRow, DatasetRefused, check_report, parse_row, read_rows, report_of
from trainer.contracts.run_config import RunConfig
from trainer.contracts.toml_config import translate
from trainer.contracts.toml_writing import write_toml

GOOD = {"messages": [{"role": "user", "content": "1+1"}, {"role": "assistant", "content": "2"}]}


def line(row: object) -> bytes:
    return json.dumps(row).encode() + b"\n"


def outcomes(content: bytes) -> dict[int, str]:
    return {found.number: found.reason for found in read_rows(io.BytesIO(content))}


def said(*roles: str, **more: object) -> bytes:
    return line({"messages": [{"role": role, "content": "x"} | more for role in roles]})


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b'{"messages": [}\n', "not JSON: Expecting value at column 15"),
        (b'{"text": "\xff"}\n', "not UTF-8: invalid start byte at byte 11"),
        (b"[1]\n", "not a JSON object"),
        (b'{"text": "a", "n": NaN}\n', "not JSON: NaN is no JSON number"),
        (b'{"text": "\\ud800"}\n', "half a character"),
        (line({"question": "?"}), "messages, prompt and completion, or text, one of them; here is 'question'"),
        (line(GOOD | {"text": "x"}), "here is messages and text"),
        (line({"text": ""}), "text: String should have at least 1 character"),
        (said("user", "robot"), "messages.1.role: Input should be 'system', 'developer', 'user', 'assistant' or 'tool'"),
        (said("user"), "no message is the assistant's"),
        (said("assistant", "user"), "nothing stands before it"),
        (line({"messages": [{"role": "user"}]}), "neither content nor tool_calls"),
        (line({"messages": [{"role": "user", "content": "x", "tool_calls": [{}]}]}), "only the assistant makes"),
        (line({"prompt": "1+1"}), "completion: Field required"),
    ],
)
def test_a_bad_row_is_named_by_line_and_reason(raw: bytes, reason: str):
    found = outcomes(line(GOOD) + b"\n" + raw)
    assert found.keys() == {1, 3} and found[1] == "", "blank lines are no rows"
    assert reason in found[3]


def test_one_file_holds_one_kind_and_the_first_good_row_says_which():
    found = outcomes(b"{}\n" + line({"text": "a"}) + line(GOOD) + line({"text": "b"}))
    assert found[3] == "a row of chat in a file of text rows; one file holds one kind"
    assert [number for number, reason in found.items() if not reason] == [2, 4]


def test_prompt_and_completion_are_one_exchange():
    texts = parse_row(line({"prompt": "1+1", "completion": "2"}))
    lists = parse_row(line({"prompt": GOOD["messages"][:1], "completion": GOOD["messages"][1:]}))
    assert isinstance(texts, ChatRow) and texts.messages == lists.messages == parse_row(line(GOOD)).messages


def test_a_byte_order_mark_refuses_the_file():
    with pytest.raises(DatasetRefused, match="line 1: the file begins with a byte order mark"):
        outcomes(b"\xef\xbb\xbf" + line(GOOD))


def test_a_line_that_is_too_long_is_dropped_and_the_next_one_read(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(datasets, "LINE_BYTES_MAX", 100)
    content = line({"text": "x" * 450}) + line({"text": "short"})
    first, second = read_rows(io.BytesIO(content))
    assert "longer than 100 bytes" in first.reason
    assert second.row is not None and content[second.offset :] == line({"text": "short"})


def test_too_many_rows_refuse_the_file(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(datasets, "ROWS_MAX", 2)
    with pytest.raises(DatasetRefused, match="line 3: more than 2 rows"):
        outcomes(line(GOOD) * 3)


def test_the_report_counts_every_row_and_names_the_first_dropped_ones():
    report = report_of([(1, ""), (2, "bad"), (3, ""), (5, "bad"), *((n, "worse") for n in range(10, 100))])
    assert (report.rows, report.kept, report.dropped) == (94, 2, 92)
    assert report.reasons == {"worse": 90, "bad": 2}
    assert [problem.line for problem in report.problems[:3]] == [2, 5, 10] and len(report.problems) == datasets.PROBLEMS_MAX


def test_more_dropped_rows_than_allowed_refuse_the_file():
    report = report_of([(1, ""), (2, "bad"), (3, ""), (4, "")])
    check_report(report, 0.25)
    with pytest.raises(DatasetRefused, match=r"3 of 4 rows are kept, 1 dropped \(line 2: bad\); more than dropped_max = 0.2"):
        check_report(report, 0.2)
    with pytest.raises(DatasetRefused, match="nothing to learn from"):
        check_report(report_of([(1, "bad")]), 1.0)


@pytest.mark.parametrize("name", ["chat_rows", "mid_training"])
def test_the_example_configurations_name_datasets_alone(name: str):
    document = tomllib.loads((REPOSITORY / "examples" / "configs" / f"{name}.toml").read_text())
    config = RunConfig.model_validate(translate(document).body)
    assert config.datasets and not config.environments and config.rollouts_per_batch() == 0
    assert RunConfig.model_validate(translate(tomllib.loads(write_toml(config))).body) == config


def test_each_source_has_a_name_of_its_own():
    body = {"model": {"name": "tiny"}, "datasets": [{"id": "a"}, {"id": "a"}, {"id": "b"}], "environments": [{"id": "b"}]}
    assert RunConfig.model_validate(body).dataset_names() == ["a", "a (dataset 2)", "b (dataset 3)"]


def test_dropped_rows_are_counted_by_reason_the_commonest_first():
    reasons = ["", *["too long"] * 3, *(f"reason {number}" for number in range(6)), "too long"]
    report = report_of(enumerate(reasons, start=1))
    named = "; ".join(f"1 × reason {number}" for number in range(4))
    assert report.reasons_in_words() == f"4 × too long; {named}; 2 for other reasons"
