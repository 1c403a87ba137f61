"""The demo as a newcomer runs it: that the chain holds and, by its gates, that it teaches."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.own_stack import outside_environment
from tests.fixtures.places import REPOSITORY

SHORT = ("--steps", "6", "--rollouts", "16")


def run_demo(folder: Path, *arguments: str) -> tuple[int, dict[str, Any], str]:
    """The demo's exit code, report and output. Its stack is its own and ends with it."""
    report = folder / "demo.json"
    command = [sys.executable, "examples/demo", "--root", str(folder / "stack"), "--report", str(report), "--exit", *arguments]
    done = subprocess.run(
        command,
        cwd=REPOSITORY,
        env=outside_environment(),
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    output = done.stdout + done.stderr
    assert report.exists(), output[-4000:]
    return done.returncode, json.loads(report.read_text()), output


@pytest.mark.timeout(1800)
def test_two_teams_go_from_push_to_a_billed_adapter(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """By its short form where heavy tests are left out; else as it is, and it teaches what its gates ask for."""
    is_short = "not heavy" in request.config.getoption("markexpr")
    code, report, output = run_demo(tmp_path, *(SHORT if is_short else ()))
    assert set(report["teams"]) == {"sum", "max"}
    for figures in report["teams"].values():
        assert figures["openai_call_ok"]
        assert figures["response_digest"] == figures["deployed_digest"]
        assert figures["charged_microusd"] > 0
    assert report["bill_recomputed_equal"], output[-4000:]
    assert report["ledger_sum_microusd"] == 0
    assert report["ledger_entries_count"] > 0
    assert len(report["trainer_pids"]) == 1
    assert report["base_weights_sha256"]["before"] == report["base_weights_sha256"]["after"]
    if is_short:
        assert {figures["steps"] for figures in report["teams"].values()} == {6}
    else:
        assert code == 0 and "every gate holds" in output, output[-4000:]
        assert all(figures["adapter_eval"] > figures["base_eval"] + 0.3 for figures in report["teams"].values())
