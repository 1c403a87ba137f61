"""`prime train why`: the cause, the evidence and the way out of a run that failed, pauses or stands still, on one screen.

Knows what helps against which code. The cause itself is the server's to say.
"""

from typing import Annotated, Any

import typer

from primecli.output import OutputFormat, OutputOption, moment
from primecli.session import Session, session_of
from trainer.contracts.events import TERMINAL_STATES, FailureCode, RunState

INCIDENTS_SHOWN = 5
TIMELINE_LIMIT = 200
PUSH_AGAIN = "correct the environment and `prime push --auto-bump`, then start the run again"
GO_ON = "go on with: prime train resume {run}"
RESTART = "nothing is lost up to the newest checkpoint: prime train restart {run}"
WAYS_OUT = {
    FailureCode.ENVIRONMENT_BROKEN: PUSH_AGAIN,
    FailureCode.ENVIRONMENT_FAILING: f"{PUSH_AGAIN}; or, if it was a service that your code calls, {GO_ON}",
    FailureCode.DATASET_REFUSED: "choose rows that the model can take, or allow more with [[dataset]] dropped_max",
    FailureCode.ROLLOUTS_LOST: f"the failures were ours and cost nothing; {GO_ON}",
    FailureCode.TRAINER_REFUSED: "change what the cause names in the configuration, then start the run again",
    FailureCode.MODEL_REFUSED: "correct the key, the model's name or the account at its server, then start again",
    FailureCode.NON_FINITE: "lower learning_rate, then start the run again; checkpoints of before are good",
    FailureCode.DIVERGING: "lower learning_rate, or begin from an earlier checkpoint: prime train checkpoints {run}",
    FailureCode.STALLED: "the cause names whom it waited for; once that answers: prime train restart {run}",
    FailureCode.OUT_OF_FUNDS: f"prime wallet top-up AMOUNT_USD, then {GO_ON}",
    FailureCode.ATTEMPTS_EXHAUSTED: f"look at `prime train logs {{run}} --level error`; {RESTART}",
    FailureCode.STOPPED_BY_USER: "prime train restart {run}",
    FailureCode.EXTERNAL_FAILED: "its own trainer knows more: nothing of it runs here",
}
IN_STATE = {
    RunState.QUEUED: "nothing to do: it starts by itself once a place is free",
    RunState.PENDING: "nothing to do: its process is being started",
    RunState.RUNNING: "watch it: prime train logs {run} -f",
    RunState.PAUSING: "nothing to do: it writes a checkpoint",
    RunState.PAUSED: GO_ON,
    RunState.COMPLETED: "nothing is wrong: it is complete",
}
"""What helps where no failure is told."""


def why(
    ctx: typer.Context,
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="The run's id.")],
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Say why a run failed, pauses or stands still: the cause, the evidence, and what to do now."""
    cli = session_of(ctx, output)
    run = cli.client.get(f"/rft/runs/{run_id}")["run"]
    answer = explained(run, _troubles(cli, run_id))
    cli.terminal.facts(answer, _facts(answer))
    cli.show_page(f"/runs/{run_id}")


def explained(run: dict[str, Any], troubles: list[dict[str, Any]]) -> dict[str, Any]:
    """`{run_id, status, step, code, cause, evidence, incidents, way_out}`: stable, for scripts too."""
    failure, state = run.get("failureAnalysis") or {}, RunState(run["status"])
    code = failure.get("code")
    template = WAYS_OUT.get(code) or (RESTART if state in TERMINAL_STATES and code else IN_STATE.get(state, RESTART))
    return {
        "run_id": run["id"],
        "status": run["status"],
        "step": run.get("step"),
        "code": code,
        "cause": failure.get("rootCause") or _standing(run, state, troubles),
        "evidence": failure.get("evidence") or [],
        "incidents": [_incident(event) for event in troubles[-INCIDENTS_SHOWN:]],
        "way_out": template.format(run=run["id"]),
    }


def _standing(run: dict[str, Any], state: RunState, troubles: list[dict[str, Any]]) -> str:
    """Of a run that has not failed: what it waits for, or is doing."""
    if state is RunState.QUEUED:
        ahead = run.get("runsAhead") or 0
        return run.get("queueReason") or (f"{ahead} runs are ahead of it" if ahead else "it is next in its queue")
    if state is RunState.RUNNING and troubles and not str(troubles[-1]["payload"].get("code", "")).endswith("_over"):
        return str(troubles[-1]["payload"].get("message") or "")
    return run.get("phase") or f"it is {state.lower()}"


def _troubles(cli: Session, run_id: str) -> list[dict[str, Any]]:
    events = cli.client.get(f"/rft/runs/{run_id}/timeline", limit=TIMELINE_LIMIT)["events"]
    return [event for event in events if event["kind"] in {"incident", "warning"}]


def _incident(event: dict[str, Any]) -> dict[str, Any]:
    payload = event["payload"]
    told = {name: payload.get(name) for name in ("code", "component", "message")}
    return {"at": event["at"], "step": event.get("step")} | told


def _facts(answer: dict[str, Any]) -> list[tuple[str, Any]]:
    return [
        ("run", answer["run_id"]),
        ("status", answer["status"]),
        ("step", answer["step"]),
        ("code", answer["code"]),
        ("cause", answer["cause"]),
        *(("evidence", line) for line in answer["evidence"]),
        *((moment(one["at"]) or "", f"{one['component'] or ''}: {one['message']}") for one in answer["incidents"]),
        ("way out", answer["way_out"]),
    ]
