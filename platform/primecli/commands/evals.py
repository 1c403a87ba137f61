"""`prime eval`: hosted evaluations of a model on an environment."""

import json
import time
from typing import Annotated, Any

import typer

from primecli.commands import eval_comparison
from primecli.environment_names import ENVIRONMENT_HELP
from primecli.eval_tables import missing_text, pass_text
from primecli.following import log_line
from primecli.output import CliError, ExitCode, OutputFormat, OutputOption, last_words, moment
from primecli.session import Session, YesOption, session_of

POLL_S = 1.0
FINAL_STATUSES = frozenset({"COMPLETED", "FAILED", "TIMEOUT", "CANCELLED"})

app = typer.Typer(no_args_is_help=True, help="Evaluate a model on an environment.")
EvalArgument = Annotated[str, typer.Argument(metavar="EVAL", help="The evaluation's id.")]


@app.command("run")
def run(
    ctx: typer.Context,
    environment: Annotated[str, typer.Argument(help=ENVIRONMENT_HELP)],
    model: Annotated[str, typer.Option("--model", "-m", help="A base model, or base:adapter_id.")],
    num_examples: Annotated[int, typer.Option("--num-examples", "-n", min=-1, help="-1 takes all.")] = 32,
    rollouts: Annotated[int, typer.Option("--rollouts-per-example", "-r", min=1)] = 1,
    max_tokens: Annotated[int | None, typer.Option("--max-tokens", min=1)] = None,
    temperature: Annotated[float | None, typer.Option("--temperature", min=0.0)] = None,
    env_args: Annotated[str | None, typer.Option("--env-args", help="Arguments of the environment, as a JSON object.")] = None,
    seat: Annotated[
        list[str] | None, typer.Option("--seat", help="AGENT=MODEL: another model plays this agent. May be repeated.")
    ] = None,
    name: Annotated[str | None, typer.Option("--name")] = None,
    force: Annotated[bool, typer.Option("--force", help="Evaluate a release that failed its check.")] = False,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait, and exit with the outcome.")] = False,
    hosted: Annotated[bool, typer.Option("--hosted", help="Accepted for compatibility; evaluations are always hosted.")] = True,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Start a hosted evaluation."""
    cli = session_of(ctx, output)
    sampling = {key: value for key, value in (("max_tokens", max_tokens), ("temperature", temperature)) if value is not None}
    config: dict[str, Any] = {"num_examples": num_examples, "rollouts_per_example": rollouts}
    config |= ({"sampling_args": sampling} if sampling else {}) | ({"env_args": _object(env_args)} if env_args else {})
    config |= {"seats": _seats(seat)} if seat else {}
    body: dict[str, Any] = {"environment_ids": [environment], "inference_model": model, "eval_config": config}
    body |= (
        ({"name": name} if name else {})
        | ({"force": True} if force else {})
        | ({"team_id": cli.config.team_id} if cli.config.team_id else {})
    )
    made = cli.client.post("/hosted-evaluations", body)
    eval_id = made["evaluation_id"]
    cli.terminal.success(f"evaluation {eval_id} is {made.get('status', 'PENDING')}")
    cli.show_page(f"/evaluations/{eval_id}")
    if follow:
        _finish(cli, _await(cli, eval_id))
    else:
        cli.terminal.data(made)


def _object(text: str) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise typer.BadParameter(f"not JSON: {error}", param_hint="--env-args") from error
    if not isinstance(found, dict):
        raise typer.BadParameter("not a JSON object", param_hint="--env-args")
    return found


def _seats(pairs: list[str]) -> dict[str, Any]:
    cut = [pair.partition("=") for pair in pairs]
    if wrong := next((pair for pair, (agent, _, model) in zip(pairs, cut, strict=True) if not (agent and model)), None):
        raise typer.BadParameter(f"{wrong} is not AGENT=MODEL, as in user=tiny", param_hint="--seat")
    return {agent: {"model": {"name": model}} for agent, _, model in cut}


def _await(cli: Session, eval_id: str) -> dict[str, Any]:
    """Poll until the evaluation has ended; the server ends it at its own time limit."""
    with cli.terminal.progress(unit="rollouts") as progress:
        bar = progress.add_task("evaluating", total=None)
        while True:
            found = cli.client.get(f"/evaluations/{eval_id}")
            if found["status"] in FINAL_STATUSES:
                return found
            progress.update(bar, completed=found.get("total_samples") or 0, description=f"evaluating ({found['status'].lower()})")
            time.sleep(POLL_S)


def _finish(cli: Session, found: dict[str, Any]) -> None:
    cli.terminal.facts(found, _facts(found))
    if found["status"] != "COMPLETED":
        reason = found.get("error_message") or "no reason was given"
        raise CliError(f"the evaluation ended {found['status']}: {reason}", ExitCode.RUN_FAILED, code="run_failed")


def _facts(found: dict[str, Any]) -> list[tuple[str, Any]]:
    metrics, statistics = found.get("metrics") or {}, found.get("statistics") or {}
    return [
        ("evaluation", found["evaluation_id"]),
        ("name", found.get("name")),
        ("status", found["status"]),
        ("model", found.get("model_name")),
        ("environments", found.get("environment_names")),
        ("rollouts", found.get("total_samples")),
        ("reward", found.get("avg_score")),
        ("pass@k", pass_text(statistics)),
        ("missing", missing_text(statistics)),
        *sorted((name, value) for name, value in metrics.items() if name not in ("reward_mean", "rollouts")),
        ("error", found.get("error_message")),
    ]


app.command("compare")(eval_comparison.compare)


@app.command("list")
def list_evaluations(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100)] = 20,
    skip: Annotated[int, typer.Option("--skip", min=0)] = 0,
    environment: Annotated[str | None, typer.Option("--env", help="Only of this environment (owner/name).")] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """List the team's evaluations, newest first."""
    cli = session_of(ctx, output)
    asked = {"skip": skip, "limit": limit, "environment_name": environment, "team_id": cli.config.team_id or None}
    reply = cli.client.get("/evaluations/", **asked)
    columns = [
        ("evaluation", lambda row: row["evaluation_id"]),
        ("environment", lambda row: row.get("environment_names")),
        ("model", lambda row: row.get("model_name")),
        ("status", lambda row: row["status"]),
        ("reward", lambda row: row.get("avg_score")),
        ("created", lambda row: moment(row.get("created_at"))),
    ]
    cli.terminal.table(reply, reply["evaluations"], columns, empty="no evaluations yet; start one with `prime eval run`")


@app.command("get")
def get(ctx: typer.Context, eval_id: EvalArgument, output: OutputOption = OutputFormat.TABLE) -> None:
    """Show one evaluation."""
    cli = session_of(ctx, output)
    found = cli.client.get(f"/evaluations/{eval_id}")
    cli.terminal.facts(found, _facts(found))


@app.command("samples")
def samples(
    ctx: typer.Context,
    eval_id: EvalArgument,
    page: Annotated[int, typer.Option("--page", min=1)] = 1,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000)] = 20,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Show the rollouts of an evaluation."""
    cli = session_of(ctx, output)
    reply = cli.client.get(f"/evaluations/{eval_id}/samples", page=page, limit=limit)
    columns = [
        ("example", lambda row: row.get("example_id")),
        ("reward", lambda row: row.get("reward")),
        ("completion", last_words),
        ("error", lambda row: row.get("error")),
    ]
    cli.terminal.table(reply, reply["samples"], columns, empty="no rollouts yet")


@app.command("logs")
def logs(ctx: typer.Context, eval_id: EvalArgument, output: OutputOption = OutputFormat.TABLE) -> None:
    """Print the log of an evaluation."""
    cli = session_of(ctx, output)
    reply = cli.client.get(f"/hosted-evaluations/{eval_id}/logs")
    cli.terminal.data(reply)
    if not cli.terminal.is_json:
        for line in reply["logs"].splitlines():
            cli.terminal.out.print(log_line(line), markup=False)


@app.command("stop")
def stop(ctx: typer.Context, eval_id: EvalArgument, yes: YesOption = False, output: OutputOption = OutputFormat.TABLE) -> None:
    """Stop an evaluation."""
    cli = session_of(ctx, output)
    cli.confirm(f"Stop evaluation {eval_id}?", yes=yes)
    reply = cli.client.request("PATCH", f"/hosted-evaluations/{eval_id}/cancel")
    cli.terminal.data(reply)
    cli.terminal.success(str(reply.get("message") or f"stopped {eval_id}"))
