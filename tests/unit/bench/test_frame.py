"""The benchmark's own rules: sides in turn, losses said, rows chosen by name, reports merged, the document complete."""

import json

import pytest

from tests.bench import __main__ as bench
from tests.bench import report
from tests.bench.document import document, verdict
from tests.bench.pairs import in_turn, summary
from tests.bench.rows import NOT_RUN, Bound, Disagreement, Row, chosen

HIGHER = Bound("higher", 1.0, 2.0)
LOWER = Bound("lower", 0.5, 0.25)


def row(name: str, samples: list[float] | None = None, bound: Bound = HIGHER) -> Row:
    def measure(pairs: int) -> list[float]:
        if samples is None:
            raise Disagreement("3 of 10 greedy tokens are equal")
        return samples

    return Row(name, "ours ÷ theirs", "peer", bound, measure)


def test_sides_run_in_turn_behind_one_round_that_does_not_count():
    calls: list[str] = []
    measured = in_turn(lambda: calls.append("a"), lambda: calls.append("b"), 2)
    assert calls == ["a", "b"] * 3
    assert len(measured) == 2


@pytest.mark.parametrize(
    ("bound", "value", "word"),
    [
        (HIGHER, 0.99, "**lost**"),
        (HIGHER, 1.0, "holds"),
        (HIGHER, 2.0, "aim reached"),
        (LOWER, 0.51, "**lost**"),
        (LOWER, 0.5, "holds"),
        (LOWER, 0.2, "aim reached"),
    ],
)
def test_a_loss_is_called_a_loss(bound, value, word):
    assert verdict(bound, value) == word


def test_the_median_stands_with_its_whole_spread():
    found = summary([3.0, 1.0, 2.0, 9.0, 2.5])
    assert (found.median, found.low, found.high) == (2.5, 1.0, 9.0)


def test_rows_are_chosen_by_id_or_beginning():
    rows = [row("P1.4m"), row("P1.30m"), row("P16.x")]
    assert [one.id for one in chosen(rows, "P1")] == ["P1.4m", "P1.30m"]
    assert [one.id for one in chosen(rows, "P1.30m,P16")] == ["P1.30m", "P16.x"]
    assert chosen(rows, "") == rows
    with pytest.raises(KeyError, match="P2"):
        chosen(rows, "P2")


def test_every_planned_row_is_measured_or_listed_as_not_run():
    measured = {one.id.split(".")[0] for one in bench.ROWS}
    assert measured | set(NOT_RUN) == {f"P{number}" for number in range(1, 20)}
    assert not measured & set(NOT_RUN)
    assert len({one.id for one in bench.ROWS}) == len(bench.ROWS)


def test_a_new_measurement_replaces_its_older_self_and_no_other(tmp_path):
    path = tmp_path / "bench.json"
    report.store(path, [report.entry(row("P1.a"), [1.0]), report.entry(row("P2.a"), [2.0])])
    report.store(path, [report.entry(row("P1.a"), [3.0])])
    assert {one["id"]: one["value"] for one in report.load(path)} == {"P1.a": 3.0, "P2.a": 2.0}
    assert set(json.loads(path.read_text())["rows"][0]) >= {"id", "value", "better", "must", "aim", "peer", "samples"}


def test_the_document_shows_losses_machines_and_what_was_not_run():
    text = document(
        [report.entry(row("P1.a"), [0.5, 0.6, 0.7]), report.entry(row("P6.a", bound=LOWER), [0.1])], [row("P1.a"), row("P2.a")]
    )
    lost = next(line for line in text.splitlines() if line.startswith("| P1.a"))
    assert "0.60" in lost and "0.50 … 0.70 (3 pairs)" in lost and "**lost**" in lost
    assert f"torch {report.machine()['torch']}" in text
    assert all(f"- {name}: " in text for name in [*NOT_RUN, "P2.a"]) and "- P1.a: " not in text


def test_sides_that_disagree_are_not_compared(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(bench, "ROWS", [row("P1.a"), row("P1.b", [0.5] * 5)])
    paths = ["--report", str(tmp_path / "bench.json"), "--document", str(tmp_path / "bench.md")]
    monkeypatch.setattr("sys.argv", ["bench", *paths])
    assert bench.main() == 1
    assert [one["id"] for one in report.load(tmp_path / "bench.json")] == ["P1.b"]
    assert "3 of 10 greedy tokens are equal" in capsys.readouterr().out
