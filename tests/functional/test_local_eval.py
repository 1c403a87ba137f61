"""`prime eval run --local`: a real environment in a runner on this machine, gone on with, summed up and pushed."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from typer.testing import Result

from tests.factories.model_socket import FakeEngine
from tests.fixtures.orchestrator_world import serve
from tests.fixtures.places import REPOSITORY
from tests.unit.primecli.stub_server import StubServer

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(300)]
MADE = {"evaluation_id": "ceval", "status": "RUNNING"}


@pytest.fixture
def here(tmp_path: Path, make_release, monkeypatch) -> Path:
    """A folder with an environment, and a runner for it that need not be installed."""
    project = tmp_path / "digit_sum"
    shutil.copytree(
        REPOSITORY / "examples" / "environments" / "digit_sum", project, ignore=shutil.ignore_patterns(".prime", "dist")
    )
    monkeypatch.setattr(
        "primecli.commands.eval_local.runner_python", lambda wheel, interface, **options: make_release("digit_sum").python
    )
    monkeypatch.chdir(tmp_path)
    return project


@pytest.fixture
def server(tmp_path: Path) -> StubServer:
    made = StubServer(tmp_path)
    made.routes |= {
        ("GET", "/api/v1/environmentshub/ada/digit-sum/@latest"): {"data": {"id": "cenv"}},
        ("GET", "/api/v1/user/whoami"): {"data": {"slug": "ada"}},
        ("POST", "/api/v1/evaluations/"): MADE,
        ("POST", "/api/v1/evaluations/ceval/samples"): {"samples_pushed": 6},
        ("POST", "/api/v1/evaluations/ceval/finalize"): MADE | {"status": "COMPLETED"},
    }
    return made


Run = Callable[..., Awaitable[Result]]


@asynccontextmanager
async def evaluating(server: StubServer, engine: FakeEngine, here: Path) -> AsyncIterator[Run]:
    """The command against one model server."""
    async with serve(engine.application()) as url:
        command = ["eval", "run", str(here), "-m", "theirs", "--local", "--api-base-url", f"{url}/v1", "--out", "kept"]

        async def run(*options: str) -> Result:
            return await asyncio.to_thread(server.run, *command, *options)

        yield run


def samples(folder: str = "kept") -> list[dict]:
    return [json.loads(line) for line in Path(folder, "results.jsonl").read_text().splitlines()]


async def test_an_evaluation_of_a_folder_goes_on_where_it_ended_and_is_pushed(server: StubServer, here: Path):
    engine = FakeEngine(reply=lambda prompt: "sum 7")
    async with evaluating(server, engine, here) as run:
        done = await run("-n", "2", "-r", "2", "--max-tokens", "8", "-o", "json")
        assert done.exit_code == 0, done.output
        told, first = json.loads(done.stdout), samples()
        assert told["total_samples"] == 4 and told["avg_score"] is not None and told["statistics"]["missing"] == {}
        assert sorted((one["example_id"], one["rollout_number"]) for one in first) == [(0, 0), (0, 1), (1, 0), (1, 1)]
        assert all(one["completion"][-1]["content"] == "sum 7" and one["token_usage"]["output_tokens"] > 0 for one in first)
        Path("kept", "results.jsonl").write_text("".join(json.dumps(one) + "\n" for one in first[:3]) + '{"example')
        done = await run("-n", "3", "-r", "2", "--max-tokens", "8", "--upload")
        assert done.exit_code == 0, done.output
        assert len(engine.requests) == 4 + 3, "three of six were there"
        pushed = [json.loads(one.content)["samples"] for one in server.requests if one.url.path.endswith("/samples")]
        assert len(pushed[0]) == 6 and "/evaluations/ceval" in done.stderr
        other = await run("-n", "3", "--temperature", "0")
        assert other.exit_code == 2 and "sampling_args differ" in other.stderr


async def test_a_model_that_does_not_answer_is_missing_and_is_asked_again(server: StubServer, here: Path):
    engine = FakeEngine(status=500)
    async with evaluating(server, engine, here) as run:
        done = await run("-n", "1", "-o", "json")
        assert json.loads(done.stdout)["statistics"]["missing"] == {"infrastructure": 1}
        engine.status = 200
        done = await run("-n", "1", "-o", "json")
    assert json.loads(done.stdout)["statistics"]["missing"] == {} and samples()[-1]["state"] == "ok"


async def test_an_older_package_is_played_by_its_own_library_on_the_rows_that_it_keeps(
    server: StubServer, tmp_path: Path, make_release, monkeypatch
):
    project = tmp_path / "digit_min"
    shutil.copytree(REPOSITORY / "examples/environments/digit_min", project, ignore=shutil.ignore_patterns(".prime", "dist"))
    asked = []

    def runner_python(wheel: Path, interface: str, **options: object) -> Path:
        asked.append(interface)
        return make_release("digit_min").python

    monkeypatch.setattr("primecli.commands.eval_local.runner_python", runner_python)
    monkeypatch.chdir(tmp_path)
    async with evaluating(server, FakeEngine(reply=lambda prompt: "min 3"), project) as run:
        done = await run("-n", "-1", "-r", "1", "--max-tokens", "8", "--env-args", '{"num_eval_tasks": 5}', "-o", "json")
    assert done.exit_code == 0, done.output
    assert asked == ["load_environment"] and json.loads(done.stdout)["total_samples"] == 5
    assert all(one["rewards"]["ends_in_digit"] == 1.0 and one["completion"][-1]["content"] == "min 3" for one in samples())
