"""The page of `make gpu-check`: complete without a run, true to a report, and committed as one of the two says."""

import pytest

from tests.bench.gpu import __main__ as gpu_check
from tests.bench.gpu.figures import KINDS, LOST, NOT_RUN, Figure, document, store


def rows(text: str) -> dict[str, list[str]]:
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")]
    return {row[0]: row[1:] for row in cells[1:]}


def test_without_a_run_every_figure_is_called_not_run():
    found = rows(document(None))
    assert list(found) == [kind.what for kind in KINDS.values()]
    assert {row[0] for row in found.values()} == {NOT_RUN}


def test_a_report_shows_figures_losses_and_failures(tmp_path):
    figures = [Figure("train.1", 12_345.6), Figure("isolation.content", 1e-9), Figure("swap", failed="OutOfMemoryError: no room")]
    report = store(tmp_path / "gpu.json", figures, device="a GPU", torch="2", seconds=61.2)
    text = document(report)
    found = rows(text)
    assert "a GPU, torch 2, 61 s in all." in text
    assert found[KINDS["train.1"].what][0] == "12,346"
    assert found[KINDS["isolation.content"].what][-1] == LOST
    assert found[KINDS["swap"].what][0] == "failed: OutOfMemoryError: no room"
    assert found[KINDS["engine.8"].what][0] == NOT_RUN


@pytest.mark.parametrize(
    ("figure", "passes"),
    [
        (Figure("isolation.strict", 0.0), True),
        (Figure("isolation.strict", 1e-12), False),
        (Figure("swap", 9.0), True),  # slow, and said
        (Figure("swap", failed="it broke"), False),
    ],
)
def test_promises_and_broken_checks_fail_the_command(figure, passes):
    assert figure.passes is passes


def test_a_check_that_breaks_leaves_its_reason(monkeypatch):
    monkeypatch.setattr(gpu_check, "_print", lambda *_: None)

    def broken() -> list[Figure]:
        raise RuntimeError("no kernel\nfor this")

    assert gpu_check.attempt("engine", broken) == [
        Figure(name, failed="RuntimeError: no kernel") for name in ("engine.base", "engine.1", "engine.8")
    ]


def test_without_a_gpu_the_command_says_so_and_ends_well(monkeypatch, capsys):
    monkeypatch.setattr(gpu_check.torch.cuda, "is_available", lambda: False)
    assert gpu_check.main([]) == 0
    assert capsys.readouterr().out.startswith("gpu-check not run: torch finds no CUDA device")


def test_the_committed_page_names_every_figure():
    assert list(rows(gpu_check.DOCUMENT.read_text())) == [kind.what for kind in KINDS.values()]
