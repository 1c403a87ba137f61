"""The measured figures that the documentation shows: they come from reports that lie beside them, and hold what is claimed."""

import json
import tomllib
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from tests.fixtures.places import REPOSITORY

FIGURES = REPOSITORY / "docs" / "figures"
REPORTS = sorted(FIGURES.glob("demo-smollm2-seed*.json"))
PAGE = (REPOSITORY / "docs" / "real-model.md").read_text()
DEMO = REPOSITORY / "examples" / "demo"


def read(path: Path) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(path.read_text())
    return report


def test_there_is_a_report_of_each_seed():
    assert [read(path)["seed"] for path in REPORTS] == [0, 1]


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_every_gate_of_the_demo_holds_in_the_report(path, monkeypatch):
    monkeypatch.syspath_prepend(str(DEMO))
    import gates
    import plan

    chosen = plan.Gates(**tomllib.loads((DEMO / "smollm2.toml").read_text())["gates"])
    assert gates.broken_gates(read(path), chosen) == []


def test_the_curves_are_drawn_from_the_reports(monkeypatch):
    monkeypatch.syspath_prepend(str(DEMO))
    import curve

    curves = [one for path in REPORTS for one in curve.curves_of(read(path))]
    assert (FIGURES / "smollm2-reward.svg").read_text() == curve.draw(curves)


@pytest.mark.parametrize("path", REPORTS, ids=lambda path: path.stem)
def test_the_page_says_what_the_report_says(path):
    report = read(path)
    team = report["teams"]["words"]
    values = [team[name] for name in ("reward_first", "reward_last", "base_eval", "adapter_eval")]
    cells = [str(report["seed"]), *(f"{value:.2f}" for value in values), f"{report['wall_s']:.0f} s"]
    assert f"| {' | '.join(cells)} |" in PAGE


def test_the_rise_of_the_tool_calls_form_is_the_reports():
    steps = read(FIGURES / "arithmetic-tools-smollm2.json")["steps"]
    parts = [step["reward_part/arithmetic-tools/well_formed_call"] for step in steps]
    first, last = fmean(parts[:3]), fmean(parts[-3:])
    assert last - first > 0.3
    words = f"rose from {first:.2f} in the first three steps to {last:.2f} in the last"
    assert words in (REPOSITORY / "docs" / "environments.md").read_text()
