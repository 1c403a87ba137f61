"""What a sandbox is started with: the values as they are by then, the run's own on top, each secret masked from then on."""

from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.orchestrator_world import release
from tests.functional.test_orchestrator import run_spec
from trainer.contracts.internal import SandboxValues
from trainer.contracts.redaction import MASK, Redactor
from trainer.contracts.rollouts import RunnerLimits
from trainer.orchestrator.attempt.endings import AttemptOver
from trainer.orchestrator.environments import runner_start
from trainer.sandboxing.runners import RunnerLost

FILE = "LS0tLS1CRUdJTiBLRVktLS0tLQo="


class Host:
    """Stands in for this machine's sandboxes. `started` keeps what each was given; `says` is the log of one that breaks."""

    def __init__(self) -> None:
        self.started: list[dict[str, Any]] = []
        self.says: str | None = None

    async def start(self, venv, model, folder, **given) -> str:
        if self.says is not None:
            raise RunnerLost("it ended", self.says)
        self.started.append({name: given[name] for name in ("secrets", "secret_files")})
        return "a runner"


@pytest.fixture
def host(monkeypatch) -> Host:
    host = Host()

    async def installed(*_: Any) -> str:
        return "a venv"

    monkeypatch.setattr(runner_start, "installed", installed)
    monkeypatch.setattr(runner_start, "start_runner", host.start)
    return host


def starter(values: list[SandboxValues], redactor: Redactor, own: dict[str, str]):
    async def current() -> SandboxValues:
        return values.pop(0)

    return runner_start.runner_starter(
        run_spec(secrets=own), release(), runner_dir=Path(), args={}, limits=RunnerLimits(), values=current, redactor=redactor
    )


async def test_each_start_gets_the_values_of_its_moment_and_the_runs_own_win(host: Host):
    secrets = {"API_KEY": "the-first-value", "TOKEN": "of-the-hub"}
    first = SandboxValues(variables={"LEVEL": "hard"}, secrets=secrets, files={"F": FILE})
    start = starter([first, SandboxValues(files={"TOKEN": FILE})], Redactor(), {"TOKEN": "of-the-run"})
    assert [await start(Path()) for _ in range(2)] == ["a runner"] * 2
    assert host.started == [
        {"secrets": {"LEVEL": "hard", "API_KEY": "the-first-value", "TOKEN": "of-the-run"}, "secret_files": {"F": FILE}},
        {"secrets": {"TOKEN": "of-the-run"}, "secret_files": {}},
    ]


async def test_what_was_handed_out_is_masked_from_then_on_and_before_anything_is_cut(host: Host):
    secret = "a-rather-long-secret-value"
    redactor = Redactor()
    host.says = secret + "x" * (runner_start.LOG_TAIL - len(MASK))
    start = starter([SandboxValues(secrets={"API_KEY": secret}, variables={"LEVEL": "as-shown-as-ever"})], redactor, {})
    with pytest.raises(AttemptOver) as ended:
        await start(Path())
    assert ended.value.detail["log"].startswith(MASK)
    assert redactor.text(f"{secret} as-shown-as-ever") == f"{MASK} as-shown-as-ever"
