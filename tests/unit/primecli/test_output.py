"""How values look to people."""

import pytest

from primecli.following import event_line, log_line
from primecli.output import cell, flat, last_words, moment, usd


@pytest.mark.parametrize(
    ("amount", "text"),
    [
        (None, "-"),
        (0, "$0.00"),
        (4.99, "$4.99"),
        (0.06, "$0.06"),
        ("0.000012", "$0.000012"),
        (1234.5, "$1,234.50"),
        (4.998225, "$4.998225"),
    ],
)
def test_dollars(amount, text):
    assert usd(amount) == text


def test_markup_in_data_is_data():
    assert cell("[red]x[/red]") == r"\[red]x\[/red]"
    assert (cell(None), cell(True), cell(0.12345), cell(["a", 1])) == ("-", "yes", "0.1235", "a, 1")


def test_times_are_short():
    assert moment("2026-11-29T10:15:42Z") == "2026-11-29 10:15" and moment(None) is None


def test_a_nested_configuration_is_spelled_as_overrides_are():
    table = {"b": {"c": 1, "d": None}, "a": [{"id": "x", "args": {}}, {"id": "y"}], "e": [1, 2]}
    assert flat(table) == [("a.0.id", "x"), ("a.1.id", "y"), ("b.c", 1), ("e", [1, 2])]


@pytest.mark.parametrize(
    "row", [{"completion": [{"content": "sum\n 7"}]}, {"completion": "sum 7"}, {"completion": None, "preview": "sum 7"}]
)
def test_the_last_words_of_a_rollout(row):
    assert last_words(row) == "sum 7"


def test_log_lines_that_are_json_are_told_plainly():
    line = '{"timestamp": "2026-11-29T10:15:42Z", "level": "INFO", "component": "orchestrator", "message": "step 1"}'
    assert log_line(line) == "10:15:42  INFO     orchestrator: step 1"
    assert log_line("plain text") == "plain text" and log_line("[1]") == "[1]"


@pytest.mark.parametrize(
    ("kind", "payload", "text"),
    [
        ("state", {"state": "FAILED", "reason": "no funds"}, "FAILED (no funds)"),
        ("version", {"version": 3, "adapter_digest": "ab" * 32}, "v3 served, digest abababababab"),
        ("eval", {"environment": "a/b", "reward_mean": 0.5, "rollouts": 8}, "a/b: reward 0.5 over 8 rollouts"),
        ("incident", {"code": "runner_lost", "message": "the runner died"}, "the runner died"),
        ("something_new", {"x": 1}, "x 1"),
    ],
)
def test_every_kind_of_event_is_a_line(kind, payload, text):
    assert event_line({"kind": kind, "at": "2026-11-29T10:15:42Z", "payload": payload}).endswith(text)
