"""`prime env status` and `info`: what a check found, in words."""

import pytest

from tests.unit.primecli.stub_server import StubServer

NEEDS = {
    "container": False,
    "network": False,
    "tools": ["calc_add"],
    "skills": [],
    "harnesses": [
        {"harness": "rootstock-chat", "evaluate": True, "train": True, "reason": ""},
        {"harness": "codex", "evaluate": False, "train": False, "reason": "needs a container"},
    ],
}
SEEN = {"agents": ["agent"], "trained_agents": ["agent"], "turns": 2, "calls_tools": False, "group_rewards": [], "needs": NEEDS}
SAMPLE = {"task": 0, "preview": "1+1?", "state": "ok", "reward": 0.5, "turns": 1, "error": ""}


@pytest.fixture
def server(tmp_path) -> StubServer:
    return StubServer(tmp_path)


def shown(server: StubServer, verdict: dict) -> str:
    found = {"version": "0.1.0", "badge": "GREEN" if verdict["ok"] else "RED", "verdict": verdict}
    server.routes["GET", "/api/v1/environmentshub/ada/sums/@latest/badge"] = {"data": found}
    done = server.run("env", "status", "ada/sums", COLUMNS="200")
    assert done.exit_code == 0, done.output
    return " ".join(done.stdout.split())


def test_a_green_release_shows_its_rollouts_and_its_needs(server):
    splits = [
        {"name": "eval", "tasks_count": 200, "checked": [0, 99, 199], "open_setting": "dataset_split"},
        {"name": "", "tasks_count": None, "checked": [0]},
    ]
    text = shown(server, {"ok": True, "summary": "good", "splits": splits, "samples": [SAMPLE], "compatibility": SEEN})
    assert "eval: 3 of 200 (other values of dataset_split are unknown), 1 of an endless number" in text
    assert "rollout of task 0 reward 0.5, 1 turn" in text
    assert "needs nothing beyond a sandbox" in text
    assert "calc_add" in text
    assert "rootstock-chat: evaluate, train, codex: needs a container" in text


def test_a_release_that_trains_nobody_says_so_of_its_harness(server):
    fit = {"harness": "own", "evaluate": True, "train": False, "reason": "no agent of it is trained"}
    alone = {**SEEN, "trained_agents": [], "needs": NEEDS | {"harnesses": [fit]}}
    text = shown(server, {"ok": True, "summary": "good", "compatibility": alone})
    assert "good for evaluation alone: no agent of it is trained" in text
    assert "own: evaluate (no agent of it is trained)" in text


def test_info_shows_what_stands_on_it_and_how_to(server):
    found = {
        "id": "e1", "owner": {"name": "ada"}, "name": "sums", "semantic_version": "0.1.0", "visibility": "PUBLIC",
        "content_hash": "0" * 64, "requirement": "sums @ http://hub.example/sums.whl#sha256=00",
    }  # fmt: skip
    related = {"dependants": [{"environment": "bob/deep"}, {"environment": "eve/games"}], "forks": []}
    server.routes["GET", "/api/v1/environmentshub/ada/sums/@latest"] = {"data": found}
    server.routes["GET", "/api/v1/environmentshub/ada/sums/related"] = {"data": related}
    server.routes["GET", "/api/v1/environmentshub/ada/sums/leaderboard"] = {"data": []}
    server.routes["GET", "/api/v1/rft/adapters"] = {"adapters": []}
    done = server.run("env", "info", "ada/sums", COLUMNS="200")
    assert done.exit_code == 0, done.output
    text = " ".join(done.stdout.split())
    assert "needed by bob/deep, eve/games" in text
    assert f"require it by {found['requirement']}" in text


def test_a_red_release_names_task_and_field(server):
    problem = {"split": "eval", "task": 7, "field": "prompt", "message": "is empty"}
    failed = SAMPLE | {"task": 3, "state": "failed", "error": "KeyError: 'k'"}
    needy = {**SEEN, "agents": [], "trained_agents": [], "turns": 0, "needs": NEEDS | {"network": True}}
    text = shown(server, {"ok": False, "summary": "bad", "problems": [problem], "samples": [failed], "compatibility": needy})
    assert "task 7 of eval: prompt: is empty" in text
    assert "rollout of task 3 failed: KeyError: 'k'" in text
    assert "needs network" in text and "good for" not in text
