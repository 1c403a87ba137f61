"""`prime eval`: evaluations of models on environments, and what came of them."""

from typing import Annotated

import typer

from primecli.commands import eval_comparison, eval_gate, eval_push, eval_run
from primecli.eval_tables import evaluation_facts
from primecli.following import log_line
from primecli.output import OutputFormat, OutputOption, last_words, moment
from primecli.session import YesOption, session_of

app = typer.Typer(no_args_is_help=True, help="Evaluate a model on an environment.")
EvalArgument = Annotated[str, typer.Argument(metavar="EVAL", help="The evaluation's id.")]


app.command("run")(eval_run.run)
app.command("compare")(eval_comparison.compare)
app.command("gate")(eval_gate.gate)
app.command("push")(eval_push.push)


@app.command("list")
def list_evaluations(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100)] = 20,
    skip: Annotated[int, typer.Option("--skip", min=0)] = 0,
    environment: Annotated[str | None, typer.Option("--env", help="Only of this environment (owner/name).")] = None,
    group: Annotated[str | None, typer.Option("--group", help="Only of this group.")] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """List the team's evaluations, newest first."""
    cli = session_of(ctx, output)
    asked = {"skip": skip, "limit": limit, "environment_name": environment, "group_id": group}
    asked["team_id"] = cli.config.team_id or None
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
    cli.terminal.facts(found, evaluation_facts(found))


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


@app.command("resume")
def resume(ctx: typer.Context, eval_id: EvalArgument, output: OutputOption = OutputFormat.TABLE) -> None:
    """Let a hosted evaluation that failed, was stopped or ran out of time go on with what it lacks."""
    cli = session_of(ctx, output)
    found = cli.client.request("PATCH", f"/hosted-evaluations/{eval_id}/resume")
    cli.terminal.data(found)
    cli.terminal.success(f"evaluation {eval_id} is {found['status']} and has {found['total_samples']} rollouts already")
    cli.show_page(f"/evaluations/{eval_id}")


@app.command("publish")
def publish(
    ctx: typer.Context,
    eval_id: EvalArgument,
    take_back: Annotated[bool, typer.Option("--take-back", help="Show it to the team alone again.")] = False,
    yes: YesOption = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Show an evaluation, its samples and its cost to everybody who may see its environment, on the leaderboard too."""
    cli = session_of(ctx, output)
    if not take_back:
        cli.confirm(f"Show evaluation {eval_id} and its samples to everybody who may see its environment?", yes=yes)
    found = cli.client.request("PUT", f"/evaluations/{eval_id}", body={"is_public": not take_back})
    cli.terminal.data(found)
    cli.terminal.success(f"evaluation {eval_id} is seen by {'the team alone' if take_back else 'everybody'}")
    cli.show_page(f"/evaluations/{eval_id}")


@app.command("stop")
def stop(ctx: typer.Context, eval_id: EvalArgument, yes: YesOption = False, output: OutputOption = OutputFormat.TABLE) -> None:
    """Stop an evaluation."""
    cli = session_of(ctx, output)
    cli.confirm(f"Stop evaluation {eval_id}?", yes=yes)
    reply = cli.client.request("PATCH", f"/hosted-evaluations/{eval_id}/cancel")
    cli.terminal.data(reply)
    cli.terminal.success(str(reply.get("message") or f"stopped {eval_id}"))
