"""`python -m workers.embedded up | down | status`: the one-machine stack from the command line.

Knows how to start the supervisor in the background and to read its state. Refuses to know what the services are.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from trainer.contracts.catalogue import load_catalogue
from workers.embedded.jobs import end_jobs
from workers.embedded.services import services_of
from workers.embedded.stack import BASE_MODEL, ENGINES, REPOSITORY, Stack
from workers.embedded.supervisor import Supervisor

UP_DEADLINE_S = 900.0
DOWN_DEADLINE_S = 90.0
console = Console()


def read_state(root: Path) -> dict[str, Any]:
    """The supervisor's last word; `state` is `stopped` when no supervisor lives."""
    path = root / "supervisor.json"
    if not path.exists():
        return {"state": "stopped", "services": {}}
    document: dict[str, Any] = json.loads(path.read_text())
    if document["state"] not in {"stopped", "failed"} and not _is_alive(document["pid"]):
        document["state"] = "stopped"
    return document


def _is_alive(pid: int) -> bool:
    try:
        # A recycled pid belongs to some other program; a zombie has no command line.
        return b"workers.embedded" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False


def supervise(root: Path, model: str, engine: str) -> int:
    stack = Stack.open(root, model=model, engine=engine)
    try:
        Supervisor(services_of(stack), state_file=stack.state_file, log_folder=stack.logs).run()
    finally:
        end_jobs(stack.url("internal"))
    return 0


def up(root: Path, model: str, engine: str) -> int:
    """Start what does not run yet and wait until all of it is healthy."""
    if read_state(root)["state"] in {"ready", "starting"}:
        return _runs_already(Stack.running(root), model)
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    if (missing := missing_weights(root, model)) is not None:
        console.print(f"[red]{model} has not been fetched:[/red] python -m trainer.models.fetch {model} --to {missing}")
        return 1
    (root / "supervisor.json").unlink(missing_ok=True)
    with (root / "supervisor.log").open("ab") as log:
        # Its own session and no inherited pipe: the stack outlives the command that started it.
        process = subprocess.Popen(
            [sys.executable, "-m", "workers.embedded", "supervise", "--root", str(root), "--model", model, "--engine", engine],
            cwd=REPOSITORY,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    state = _follow(root, process)
    if state["state"] != "ready":
        console.print(f"[red]the stack did not start:[/red] {state.get('error') or 'see ' + str(root / 'supervisor.log')}")
        return 1
    console.print(f"the stack is up: {Stack.running(root).origin}")
    return 0


def missing_weights(root: Path, model: str) -> Path | None:
    """Where the model's files would have to be, when it is one that must be fetched and is not there."""
    spec, models = load_catalogue()[model], Stack.running(root).models
    return models if spec.source is not None and not (models / spec.weights).exists() else None


def _runs_already(stack: Stack, model: str) -> int:
    if stack.model != model:
        console.print(f"[red]the stack that runs serves {stack.model}, not {model}:[/red] stop it first (make down)")
        return 1
    console.print(f"the stack runs already: {stack.origin}")
    return 0


def _follow(root: Path, process: subprocess.Popen[bytes]) -> dict[str, Any]:
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed}/{task.total}"),
        TimeElapsedColumn(),
    )
    deadline = time.monotonic() + UP_DEADLINE_S
    with Progress(*columns, console=console) as progress:
        bar = progress.add_task("starting services", total=None)
        while time.monotonic() < deadline:
            state = read_state(root)
            services = state["services"]
            ready = [name for name, service in services.items() if service["state"] == "ready"]
            waiting = next((name for name, service in services.items() if service["state"] != "ready"), "all ready")
            progress.update(bar, total=len(services) or None, completed=len(ready), description=f"starting services: {waiting}")
            if state["state"] in {"ready", "failed"} or process.poll() is not None:
                return read_state(root)
            time.sleep(0.1)
    return read_state(root)


def down(root: Path, _model: str, _engine: str) -> int:
    state = read_state(root)
    if state["state"] in {"stopped", "failed"}:
        console.print("the stack does not run")
        return 0
    os.kill(state["pid"], signal.SIGTERM)
    deadline = time.monotonic() + DOWN_DEADLINE_S
    while _is_alive(state["pid"]) and time.monotonic() < deadline:
        time.sleep(0.1)
    stopped = read_state(root)["state"] == "stopped"
    console.print("the stack is stopped" if stopped else "[red]the stack did not stop in time[/red]")
    return 0 if stopped else 1


def status(root: Path, _model: str, _engine: str) -> int:
    state = read_state(root)
    console.print_json(json.dumps(state))
    return 0 if state["state"] == "ready" else 1


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m workers.embedded", description="Run Rootstock on one machine.")
    parser.add_argument("command", choices=("up", "down", "status", "supervise"))
    parser.add_argument("--root", type=Path, default=REPOSITORY / ".rootstock")
    parser.add_argument("--model", choices=sorted(load_catalogue()), default=BASE_MODEL, help="the base model that is served")
    parser.add_argument("--engine", choices=ENGINES, default=ENGINES[0], help="what answers model calls")
    options = parser.parse_args()
    commands = {"up": up, "down": down, "status": status, "supervise": supervise}
    return commands[options.command](options.root.resolve(), options.model, options.engine)


if __name__ == "__main__":
    sys.exit(main())
