"""Following a run or an evaluation to its end: event lines on stdout, a progress bar on stderr.

Knows what the kinds of events mean to a reader. The stream itself, with its cursor and reconnects, is the client's.
"""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from primecli.client import END, ServerEvent
from primecli.output import CliError, ExitCode, cell
from primecli.session import Session
from trainer.contracts.events import EventKind, RunState

SHOWN_METRICS = ("reward", "loss", "entropy", "mismatch_kl", "error_rate", "staleness_max")


def follow_run(cli: Session, run_id: str, *, cursor: str = "0", lines: bool = True) -> dict[str, Any]:
    """Print events as they come until the run has ended or is paused, and return the run. A pause lasts until somebody resumes
    the run: whoever waits is told how, instead of waiting with no end in sight."""
    run = cli.client.get(f"/rft/runs/{run_id}")["run"]
    with cli.terminal.progress(unit="steps") as progress:
        bar = progress.add_task(run.get("name") or run_id, total=run.get("maxSteps"))
        for event in _until_final(cli, run_id, cursor):
            if lines:
                cli.terminal.line(event.data, event_line(event.data))
            if event.data.get("step"):
                progress.update(bar, completed=event.data["step"])
            if _rests(cli, run_id, event):
                cli.terminal.note(f"the run is PAUSED and waits; go on with: prime train resume {run_id}")
                break
    return dict(cli.client.get(f"/rft/runs/{run_id}")["run"])


def _until_final(cli: Session, run_id: str, cursor: str) -> Iterator[ServerEvent]:
    """Events up to the last one. The server says when that was: an ended and restarted run has ends in its history."""
    with closing(cli.client.follow(f"/rft/runs/{run_id}/events", cursor)) as events:
        yield from (event for event in events if event.kind != END)


def _rests(cli: Session, run_id: str, event: ServerEvent) -> bool:
    """Whether this event is a pause, and the last thing that happened: a resumed run has pauses in its history."""
    if event.data.get("kind") != EventKind.STATE or event.data.get("payload", {}).get("state") != RunState.PAUSED:
        return False
    newest = cli.client.get(f"/rft/runs/{run_id}/logs", tail_lines=1)["cursor"]
    return bool(event.data["seq"] >= newest)


def raise_unless_completed(run: dict[str, Any], what: str = "run") -> None:
    """A followed run that failed, was stopped or is paused is exit code 6, with the reason the server gives."""
    if run["status"] != RunState.COMPLETED:
        reason = run.get("errorMessage") or run.get("error_message") or run.get("queueReason") or ""
        verb = "is" if run["status"] == RunState.PAUSED else "ended"
        raise CliError(
            f"the {what} {verb} {run['status']}" + (f": {reason}" if reason else ""), ExitCode.RUN_FAILED, code="run_failed"
        )


def log_line(line: str) -> str:
    """A line of a log for people. Most are JSON objects; one that is not stays as it is."""
    try:
        entry = json.loads(line)
    except ValueError:
        return line
    if not isinstance(entry, dict) or "message" not in entry:
        return line
    component = f"{entry['component']}: " if entry.get("component") else ""
    return f"{str(entry.get('timestamp', ''))[11:19]}  {entry.get('level', ''):<8} {component}{entry['message']}"


def event_line(event: dict[str, Any]) -> str:
    """One event as a line for people."""
    payload = event.get("payload") or {}
    kind = event.get("kind", "")
    at = str(event.get("at", ""))[11:19]
    return f"{at}  {kind:<10} {_DESCRIBE.get(kind, _plain)(event, payload)}".rstrip()


def _step(event: dict[str, Any], payload: dict[str, Any]) -> str:
    metrics = payload.get("metrics", {})
    shown = "  ".join(f"{name} {cell(metrics[name])}" for name in SHOWN_METRICS if name in metrics)
    return f"{event.get('step')}  {shown}"


def _log(event: dict[str, Any], payload: dict[str, Any]) -> str:
    return f"{payload.get('component', '')}: {payload.get('message', '')}"


def _state(event: dict[str, Any], payload: dict[str, Any]) -> str:
    reason = payload.get("reason")
    return f"{payload.get('state')}" + (f" ({reason})" if reason else "")


def _version(event: dict[str, Any], payload: dict[str, Any]) -> str:
    return f"v{payload.get('version')} served, digest {str(payload.get('adapter_digest', ''))[:12]}"


def _evaluation(event: dict[str, Any], payload: dict[str, Any]) -> str:
    return f"{payload.get('environment')}: reward {cell(payload.get('reward_mean'))} over {payload.get('rollouts')} rollouts"


def _incident(event: dict[str, Any], payload: dict[str, Any]) -> str:
    return str(payload.get("message") or payload.get("code") or "")


def _plain(event: dict[str, Any], payload: dict[str, Any]) -> str:
    return "  ".join(f"{key} {cell(value)}" for key, value in payload.items())


_DESCRIBE = {
    EventKind.STATE: _state,
    EventKind.LOG: _log,
    EventKind.STEP: _step,
    EventKind.EVAL: _evaluation,
    EventKind.VERSION: _version,
    EventKind.INCIDENT: _incident,
    EventKind.WARNING: _incident,
}
