"""`prime deployments`: adapter versions and whether they are served. A served one answers to `base_model:adapter_id`."""

import time
from typing import Annotated, Any

import typer

from primecli.output import CliError, ExitCode, OutputFormat, OutputOption
from primecli.session import Session, session_of

POLL_S = 0.5
DEADLINE_S = 120.0
ADAPTERS = "/rft/adapters"

app = typer.Typer(no_args_is_help=True, help="Serve adapters.")
AdapterArgument = Annotated[str, typer.Argument(metavar="ADAPTER", help="The adapter's id (`prime deployments list`).")]


@app.command("list")
def list_adapters(
    ctx: typer.Context,
    run: Annotated[str | None, typer.Option("--run", help="Only versions of this run.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100)] = 50,
    offset: Annotated[int, typer.Option("--offset", min=0)] = 0,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """List the team's adapters, newest first."""
    cli = session_of(ctx, output)
    reply = cli.client.get(ADAPTERS, team_id=cli.config.team_id or None, run_id=run, limit=limit, offset=offset)
    columns = [
        ("adapter", lambda row: row["id"]),
        ("name", lambda row: row.get("displayName")),
        ("run", lambda row: row.get("rftRunId")),
        ("step", lambda row: row.get("step")),
        ("model", lambda row: served_name(row)),
        ("status", lambda row: row["status"]),
        ("deployment", lambda row: row["deploymentStatus"]),
    ]
    cli.terminal.table(reply, reply["adapters"], columns, empty="no adapters yet; a run makes them")


@app.command("create")
def create(
    ctx: typer.Context,
    adapter_id: Annotated[str | None, typer.Argument(metavar="[ADAPTER]", help="The adapter's id.")] = None,
    checkpoint: Annotated[str | None, typer.Option("--checkpoint-id", help="Deploy this checkpoint instead.")] = None,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Do not wait until it is served.")] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Serve an adapter behind the OpenAI-compatible endpoint."""
    if (adapter_id is None) == (checkpoint is None):
        raise typer.BadParameter("give an adapter's id, or --checkpoint-id")
    cli = session_of(ctx, output)
    path = f"{ADAPTERS}/{adapter_id}/deploy" if adapter_id else f"/rft/checkpoints/{checkpoint}/deploy"
    reply = cli.client.post(path)
    if not no_wait:
        reply = _await(cli, reply["adapter"]["id"], target="DEPLOYED", failed="DEPLOY_FAILED")
    adapter = reply["adapter"]
    cli.terminal.facts(
        reply, [("adapter", adapter["id"]), ("model", served_name(adapter)), ("state", adapter["deploymentStatus"])]
    )
    cli.terminal.note(f"call it at {cli.config.inference_url} with model {served_name(adapter)}")
    cli.show_page("/models")


@app.command("delete")
def delete(
    ctx: typer.Context,
    adapter_id: AdapterArgument,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Do not wait until it is gone.")] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Stop serving an adapter. The adapter itself stays."""
    cli = session_of(ctx, output)
    reply = cli.client.post(f"{ADAPTERS}/{adapter_id}/unload")
    if not no_wait:
        reply = _await(cli, adapter_id, target="NOT_DEPLOYED", failed="UNLOAD_FAILED")
    cli.terminal.data(reply)
    cli.terminal.success(f"{adapter_id} is {reply['adapter']['deploymentStatus']}")


def _await(cli: Session, adapter_id: str, *, target: str, failed: str) -> dict[str, Any]:
    deadline = time.monotonic() + DEADLINE_S
    with cli.terminal.progress() as progress:
        progress.add_task(f"waiting for {target}", total=None)
        while time.monotonic() < deadline:
            reply = cli.client.get(f"{ADAPTERS}/{adapter_id}")
            state = reply["adapter"]["deploymentStatus"]
            if state == target:
                return reply
            if state == failed:
                raise CliError(f"{failed}: {reply['adapter'].get('deploymentError')}", ExitCode.RUN_FAILED, code="deploy_failed")
            time.sleep(POLL_S)
    raise CliError(f"adapter {adapter_id} is not {target} after {DEADLINE_S:.0f} s", hint="prime deployments list")


def served_name(adapter: dict[str, Any]) -> str:
    return f"{adapter['baseModel']}:{adapter['id']}"
