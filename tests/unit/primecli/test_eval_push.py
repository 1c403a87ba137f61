"""`prime eval push`: a folder as verifiers writes it, pushed once however often it is pushed."""

import json

import httpx
import pytest

from primecli.foreign_results import batches, read_results
from tests.unit.primecli.stub_server import problem

EVAL = {"evaluation_id": "ceval", "status": "RUNNING"}
METADATA = {"env_id": "ada/digits", "model": "gpt", "avg_reward": 0.5, "num_examples": 2}
LINES = [
    '{"example_id": 0, "reward": 1.0, "completion": [{"role": "assistant", "content": "7"}]}',
    '{"example_id": 0, "reward": NaN}',
    "{broken",
    "",
    '{"id": 1, "reward": 0.0, "error": "timeout"}',
]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "metadata.json").write_text(json.dumps(METADATA))
    (tmp_path / "results.jsonl").write_text("\n".join(LINES) + "\n")
    return tmp_path


@pytest.fixture
def hub(server):
    server.routes |= {
        ("GET", "/api/v1/environmentshub/ada/digits/@latest"): {"data": {"id": "cenv"}},
        ("POST", "/api/v1/evaluations/"): EVAL,
        ("GET", "/api/v1/evaluations/ceval"): EVAL,
        ("POST", "/api/v1/evaluations/ceval/samples"): {"samples_pushed": 3},
        ("POST", "/api/v1/evaluations/ceval/finalize"): EVAL | {"status": "COMPLETED"},
    }
    return server


def sent(server, suffix: str) -> list[dict]:
    posts = [one for one in server.requests if one.method == "POST" and one.url.path.endswith(suffix)]
    return [json.loads(one.content) for one in posts]


def test_a_folder_becomes_an_evaluation_and_each_sample_says_which_it_is(hub, folder):
    done = hub.run("eval", "push", str(folder))
    assert done.exit_code == 0, done.output
    (made,) = sent(hub, "/evaluations/")
    assert made["environments"] == [{"id": "cenv"}] and made["model_name"] == "gpt"
    assert made["metadata"] == {"env_id": "ada/digits", "model": "gpt", "num_examples": 2}
    (body,) = sent(hub, "/samples")
    assert [(one["example_id"], one["rollout_number"], one["reward"]) for one in body["samples"]] == [
        (0, 0, 1.0),
        (0, 1, None),
        (1, 0, 0.0),
    ]
    assert sent(hub, "/finalize") == [{"metrics": {"reward": 0.5}}]
    assert "line 3 is left out: not JSON" in done.stderr and "/evaluations/ceval" in done.stderr


@pytest.mark.parametrize(("option", "is_public"), [((), False), (("--public",), True)])
def test_it_is_the_teams_unless_it_is_said_to_be_everybodys(hub, folder, option, is_public):
    assert hub.run("eval", "push", str(folder), *option).exit_code == 0
    assert sent(hub, "/evaluations/")[0]["is_public"] is is_public


def test_what_is_there_is_not_pushed_again_and_what_broke_off_goes_on(hub, folder):
    hub.routes["POST", "/api/v1/evaluations/ceval/finalize"] = problem(409, "busy")
    assert hub.run("eval", "push", str(folder)).exit_code == 1
    hub.routes["POST", "/api/v1/evaluations/ceval/finalize"] = EVAL | {"status": "COMPLETED"}
    assert hub.run("eval", "push", str(folder)).exit_code == 0
    assert len(sent(hub, "/evaluations/")) == 1 and len(sent(hub, "/samples")) == 2
    again = hub.run("eval", "push", str(folder))
    assert again.exit_code == 0 and "there already" in again.stderr and len(sent(hub, "/samples")) == 2
    hub.routes["GET", "/api/v1/evaluations/ceval"] = httpx.Response(404, json={"detail": "gone"})
    (folder / "results.jsonl").write_text(LINES[0])
    assert hub.run("eval", "push", str(folder), "--name", "second").exit_code == 0
    assert len(sent(hub, "/evaluations/")) == 2


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("metadata.json", "{}", "does not name the model"),
        ("metadata.json", "{", "is not JSON"),
        ("results.jsonl", "\n", "no sample"),
    ],
)
def test_a_folder_that_will_not_do_is_told_and_nothing_is_sent(hub, folder, name, text, words):
    (folder / name).write_text(text)
    done = hub.run("eval", "push", str(folder))
    assert done.exit_code == 2 and words in done.stderr and not hub.requests
    (folder / name).unlink()
    assert f"has no {name}" in hub.run("eval", "push", str(folder)).stderr


def test_the_files_themselves_may_be_named_and_large_ones_go_in_parts(folder):
    assert len(read_results(folder / "results.jsonl").samples) == 3
    parts = list(batches([{"text": "x" * (3 << 20)}] * 5))
    assert [len(part) for part in parts] == [2, 2, 1]
