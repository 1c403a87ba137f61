"""What the command says when something is wrong: of one run, and of everything between the terminal and a run."""

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx
import pytest

from primecli.commands.why import IN_STATE, WAYS_OUT
from tests.unit.primecli.stub_server import problem
from trainer.contracts.events import FailureCode, RunState

WHO = {"data": {"id": "cu", "email": "ada@example.org", "slug": "ada"}}
INSTALLATION = {
    "version": "0.1.0",
    "pools": [{"name": "p", "base_model": "tiny", "engine": "torch", "run_slots": 8, "runs": 3}],
    "sandbox": {"last_at": "2026-11-29T10:00:00Z", "ended": 10, "lost": 0},
}


def incident(code: str, message: str) -> dict:
    payload = {"code": code, "message": message, "component": "environment"}
    return {"kind": "incident", "at": "2026-11-29T10:00:00Z", "step": 4, "payload": payload}


@pytest.fixture
def run_that(server):
    """`run_that(status, failureAnalysis=…)`, with the events of its timeline."""

    def make(status: str, *events: dict, **fields: object) -> dict:
        run = {"id": "crun", "status": status, "step": 4, "failureAnalysis": None} | fields
        server.routes["GET", "/api/v1/rft/runs/crun"] = {"run": run}
        server.routes["GET", "/api/v1/rft/runs/crun/timeline"] = {"events": list(events)}
        return json.loads(server.run("train", "why", "crun", "-o", "json").stdout)

    return make


def test_a_failure_is_told_with_cause_evidence_and_way_out(run_that, server):
    failure = {"rootCause": "digit_sum.tasks, line 7: KeyError", "evidence": ["failed: 9"], "code": "environment_failing"}
    told = run_that("FAILED", incident("environment_failing", "KeyError"), failureAnalysis=failure)
    assert (told["code"], told["cause"], told["evidence"]) == ("environment_failing", failure["rootCause"], ["failed: 9"])
    assert "prime push --auto-bump" in told["way_out"] and told["incidents"][0]["message"] == "KeyError"
    shown = server.run("train", "why", "crun")
    assert "line 7" in shown.stdout and "/runs/crun" in shown.stderr and len(shown.stdout.splitlines()) < 24


@pytest.mark.parametrize("code", list(FailureCode))
def test_every_failure_has_a_way_out(run_that, code):
    failure = {"rootCause": "x", "evidence": [], "code": code}
    assert run_that("FAILED", failureAnalysis=failure)["way_out"]
    assert all("{" not in template.format(run="crun") for template in (*WAYS_OUT.values(), *IN_STATE.values()))


@pytest.mark.parametrize("state", list(RunState))
def test_a_run_in_any_state_has_an_answer(run_that, state):
    told = run_that(state)
    assert told["cause"] and told["way_out"]


def test_a_run_that_stands_still_says_whom_it_waits_for(run_that):
    assert run_that("QUEUED", queueReason="all 8 places are taken")["cause"] == "all 8 places are taken"
    assert run_that("RUNNING", incident("silent", "waits for the judge"))["cause"] == "waits for the judge"
    assert run_that("RUNNING", incident("silent_over", "the judge answers"), phase="rollouts")["cause"] == "rollouts"


PARTS = {"parts": {"database": True, "broker": True}}


def at(moment: datetime) -> dict[str, str]:
    return {"Date": format_datetime(moment, usegmt=True)}


@pytest.fixture
def healthy(server):
    server.routes |= {
        ("GET", "/healthz"): httpx.Response(200, json=PARTS, headers=at(datetime.now(UTC))),
        ("GET", "/api/v1/user/whoami"): WHO,
        ("GET", "/api/v1/installation"): INSTALLATION,
        ("GET", "/api/v1/billing/wallet"): {"balance_usd": 4.5, "total_billings": 0, "recent_billings": []},
    }
    return server


def checks(server) -> dict[str, dict]:
    return {row["check"]: row for row in json.loads(server.run("doctor", "-o", "json").stdout)["checks"]}


def test_nothing_is_wrong_where_nothing_is(healthy):
    found = checks(healthy)
    assert list(found) == ["address", "clock", "key", "versions", "pools", "sandbox", "wallet", "tools"]
    assert all(row["ok"] and not row["way_out"] for row in found.values())
    assert healthy.run("doctor", "--strict").exit_code == 0


LATE = at(datetime.now(UTC) - timedelta(hours=1))
LOST = {"last_at": "x", "ended": 1, "lost": 5}


@pytest.mark.parametrize(
    ("route", "reply", "check", "told", "way_out"),
    [
        ("/healthz", httpx.Response(502, text="gateway"), "address", "is no Rootstock", "PRIME_API_BASE_URL"),
        ("/healthz", httpx.Response(503, json={"parts": {"database": False}}), "address", "not its database", "make status"),
        (
            "/healthz",
            httpx.Response(200, json={"parts": {}}, headers=LATE),
            "clock",
            "s from the server",
            "set this machine's clock",
        ),
        ("/api/v1/user/whoami", problem(401, "There is no such key."), "key", "no such key", "prime login"),
        ("/api/v1/installation", INSTALLATION | {"version": "9.0.0"}, "versions", "server 9.0.0", "pip install"),
        ("/api/v1/installation", INSTALLATION | {"pools": []}, "pools", "none", "register_pool"),
        (
            "/api/v1/installation",
            INSTALLATION | {"sandbox": LOST},
            "sandbox",
            "5 of",
            "worker's log",
        ),
        ("/api/v1/billing/wallet", {"balance_usd": 0}, "wallet", "$0.00", "top-up"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 12 else "",
)
def test_each_thing_that_is_wrong_is_found_and_has_a_way_out(healthy, route, reply, check, told, way_out):
    healthy.routes["GET", route] = reply
    found = checks(healthy)
    assert found[check]["ok"] is False and told in found[check]["found"] and way_out in found[check]["way_out"]
    strict = healthy.run("doctor", "--strict")
    assert strict.exit_code == 1 and check in strict.stderr
