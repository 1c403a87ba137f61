"""The demo as a newcomer runs it. The short form checks that the chain holds; the heavy one, by the gates, that it teaches."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.own_stack import outside_environment
from tests.fixtures.places import REPOSITORY


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


@pytest.mark.timeout(900)
def test_two_teams_go_from_push_to_a_billed_adapter(tmp_path: Path) -> None:
    _, report, output = run_demo(tmp_path, "--steps", "6", "--rollouts", "16")
    assert set(report["teams"]) == {"sum", "max"}
    for figures in report["teams"].values():
        assert figures["steps"] == 6
        assert figures["openai_call_ok"]
        assert figures["response_digest"] == figures["deployed_digest"]
        assert figures["charged_microusd"] > 0
    assert report["bill_recomputed_equal"], output[-4000:]
    assert report["ledger_sum_microusd"] == 0
    assert report["ledger_entries_count"] > 0
    assert len(report["trainer_pids"]) == 1
    assert report["base_weights_sha256"]["before"] == report["base_weights_sha256"]["after"]


@pytest.mark.heavy
@pytest.mark.timeout(1800)
def test_every_gate_of_the_demo_holds(tmp_path: Path) -> None:
    code, report, output = run_demo(tmp_path)
    assert code == 0, output[-4000:]
    assert "every gate holds" in output
    assert all(figures["adapter_eval"] > figures["base_eval"] + 0.3 for figures in report["teams"].values())
