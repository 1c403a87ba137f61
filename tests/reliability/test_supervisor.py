"""The supervisor keeps services alive and leaves nothing behind. Its services here are two-line Python programs."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
import sys
from pathlib import Path
from workers.embedded.supervisor import Service, Supervisor

root, *names = Path(sys.argv[1]), *sys.argv[2:]
code = "import pathlib, signal, sys; pathlib.Path(sys.argv[1]).touch(); signal.pause()"

def service(name):
    mark = root / f"{name}.ready"
    if name == "broken":
        return Service(name, [sys.executable, "-c", "print('no such luck'); raise SystemExit(3)"], {}, lambda: False)
    return Service(name, [sys.executable, "-c", code, str(mark)], {}, mark.exists)

Supervisor([service(name) for name in names], state_file=root / "state.json", log_folder=root / "logs").run()
"""


class Stack:
    def __init__(self, root: Path, *names: str) -> None:
        self.root = root
        self.process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(root), *names], stderr=subprocess.DEVNULL)

    def state(self) -> dict[str, Any]:
        path = self.root / "state.json"
        return json.loads(path.read_text()) if path.exists() else {"state": "", "services": {}}

    def until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        deadline = time.monotonic() + 30
        while not holds(state := self.state()):
            assert time.monotonic() < deadline, state
            time.sleep(0.02)
        return state


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Stack]]:
    started: list[Stack] = []

    def begin(*names: str) -> Stack:
        started.append(Stack(tmp_path, *names))
        return started[-1]

    yield begin
    for stack in started:
        stack.process.terminate()
        stack.process.wait(30)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_killed_service_is_started_again(start: Callable[..., Stack]) -> None:
    stack = start("one", "two")
    before = stack.until(lambda state: state["state"] == "ready")["services"]["one"]["pid"]
    os.kill(before, signal.SIGKILL)
    after = stack.until(lambda state: state["services"]["one"]["restarts"] == 1 and state["services"]["one"]["state"] == "ready")
    assert after["services"]["one"]["pid"] != before
    assert after["services"]["two"]["restarts"] == 0


def test_stopping_leaves_no_process(start: Callable[..., Stack]) -> None:
    stack = start("one", "two")
    pids = [service["pid"] for service in stack.until(lambda state: state["state"] == "ready")["services"].values()]
    stack.process.terminate()
    assert stack.process.wait(30) == 0
    assert stack.state()["state"] == "stopped"
    assert not any(alive(pid) for pid in pids)


def test_a_service_that_cannot_start_fails_the_stack_with_its_own_words(start: Callable[..., Stack]) -> None:
    stack = start("one", "broken")
    state = stack.until(lambda state: state["state"] == "failed")
    assert "broken ended while starting" in state["error"]
    assert "no such luck" in state["error"]
    assert stack.process.wait(30) != 0
    assert state["services"]["one"]["pid"] is None or not alive(state["services"]["one"]["pid"])
