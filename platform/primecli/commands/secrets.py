"""`prime secret`: values that only sandboxes of the team see. `prime env secret`: those of one environment, and links to the
team's.

Spelled as the public client spells it. A value is asked for without echo unless it is given; it is never shown again.
"""

import base64
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from primecli.commands.push import HUB
from primecli.environment_names import ENVIRONMENT_HELP, full_name
from primecli.output import OutputFormat, OutputOption, moment
from primecli.session import Session, YesOption, session_of

SECRETS = "/secrets"
MASKED_LENGTH_MIN = 8

NameOption = Annotated[str, typer.Option("--name", "-n", prompt="Name", help="Name of the environment variable, in capitals.")]
ValueOption = Annotated[str | None, typer.Option("--value", "-v", help="The value. Others may read a command line: see --from.")]
FromOption = Annotated[Path | None, typer.Option("--from", allow_dash=True, help="Read the value from a file; `-` is stdin.")]
DescriptionOption = Annotated[str | None, typer.Option("--description", "-d", help="What it is for.")]
NewNameOption = Annotated[str | None, typer.Option("--name", "-n", help="Another name.")]
EnvironmentArgument = Annotated[str, typer.Argument(help=ENVIRONMENT_HELP)]
SecretArgument = Annotated[str, typer.Argument(metavar="SECRET", help="Id of a team's secret (`prime secret list`).")]

app = typer.Typer(no_args_is_help=True, help="Secrets of the team.")
environment_app = typer.Typer(no_args_is_help=True, help="Secrets of an environment.")


@app.command("list")
def list_secrets(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000)] = 100,
    offset: Annotated[int, typer.Option("--offset", min=0)] = 0,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """List the team's secrets, without their values."""
    cli = session_of(ctx, output)
    reply = cli.client.get(f"{SECRETS}/", limit=limit, offset=offset)
    columns = [
        ("id", lambda row: row["id"]),
        ("name", lambda row: row["name"]),
        ("description", lambda row: row["description"]),
        ("environments", lambda row: row["environmentsCount"]),
        ("updated", lambda row: moment(row["updatedAt"])),
        ("last used", lambda row: moment(row["lastUsedAt"])),
    ]
    cli.terminal.table(reply, reply["data"], columns, empty="no secrets yet; `prime secret create` makes one")


@app.command("create")
def create(
    ctx: typer.Context,
    name: NameOption,
    value: ValueOption = None,
    source: FromOption = None,
    description: DescriptionOption = None,
    is_file: Annotated[
        bool, typer.Option("--file", "-f", help="The sandbox gets a file, its path in the variable. --value is its base64.")
    ] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Keep a secret of the team. Link it to the environments that need it: `prime env secret link`."""
    cli = session_of(ctx, output)
    body = {"name": name, "value": asked_value(value, source, is_file=is_file), "description": description, "isFile": is_file}
    _show(cli, cli.client.post(f"{SECRETS}/", body)["data"], f"created {name}", body["value"])


@app.command("get")
def get(ctx: typer.Context, secret: SecretArgument, output: OutputOption = OutputFormat.TABLE) -> None:
    """Show a secret of the team, without its value."""
    cli = session_of(ctx, output)
    found = cli.client.get(f"{SECRETS}/{secret}")["data"]
    cli.terminal.facts(found, list(found.items()))


@app.command("update")
def update(
    ctx: typer.Context,
    secret: SecretArgument,
    name: NewNameOption = None,
    value: ValueOption = None,
    source: FromOption = None,
    description: DescriptionOption = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Change a secret wherever it is linked; sandboxes that start from now on get the new value."""
    cli = session_of(ctx, output)
    body = changes(name, value, source, description)
    found = cli.client.request("PATCH", f"{SECRETS}/{secret}", body=body)["data"]
    _show(cli, found, f"updated {found['name']}", body.get("value"))


@app.command("delete")
def delete(ctx: typer.Context, secret: SecretArgument, yes: YesOption = False, output: OutputOption = OutputFormat.TABLE) -> None:
    """Delete a secret of the team, and its links."""
    cli = session_of(ctx, output)
    cli.confirm(f"Delete the secret {secret} wherever it is linked?", yes=yes)
    cli.client.request("DELETE", f"{SECRETS}/{secret}")
    cli.terminal.data({"id": secret, "deleted": True})
    cli.terminal.success(f"deleted {secret}")


@environment_app.command("list")
def list_of_environment(ctx: typer.Context, environment: EnvironmentArgument, output: OutputOption = OutputFormat.TABLE) -> None:
    """List what your work on an environment gets: its own secrets, and the team's that are linked."""
    cli = session_of(ctx, output)
    reply = cli.client.get(f"{place_of(cli, environment)}/secrets")
    columns = [
        ("id", lambda row: row["id"]),
        ("name", lambda row: row["name"]),
        ("source", lambda row: row["source"]),
        ("description", lambda row: row["description"]),
        ("updated", lambda row: moment(row["updatedAt"])),
        ("last used", lambda row: moment(row["lastUsedAt"])),
    ]
    cli.terminal.table(reply, reply["data"], columns, empty="no secrets yet; `prime env secret create` makes one")


@environment_app.command("create")
def create_for_environment(
    ctx: typer.Context,
    environment: EnvironmentArgument,
    name: NameOption,
    value: ValueOption = None,
    source: FromOption = None,
    description: DescriptionOption = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Keep a secret for your work on one environment."""
    cli = session_of(ctx, output)
    body = {"name": name, "value": asked_value(value, source), "description": description}
    _show(cli, cli.client.post(f"{place_of(cli, environment)}/secrets", body)["data"], f"created {name}", body["value"])


@environment_app.command("update")
def update_for_environment(
    ctx: typer.Context,
    environment: EnvironmentArgument,
    secret: Annotated[str, typer.Option("--id", help="Id of the secret (`prime env secret list`).")],
    name: NewNameOption = None,
    value: ValueOption = None,
    source: FromOption = None,
    description: DescriptionOption = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Change an environment's secret; sandboxes that start from now on get the new value."""
    cli = session_of(ctx, output)
    body = changes(name, value, source, description)
    found = cli.client.request("PATCH", f"{place_of(cli, environment)}/secrets/{secret}", body=body)["data"]
    _show(cli, found, f"updated {found['name']}", body.get("value"))


@environment_app.command("delete")
def delete_for_environment(
    ctx: typer.Context,
    environment: EnvironmentArgument,
    secret: Annotated[str, typer.Option("--id", help="Id of the secret (`prime env secret list`).")],
    yes: YesOption = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Delete an environment's secret."""
    cli = session_of(ctx, output)
    cli.confirm(f"Delete the secret {secret} of {environment}?", yes=yes)
    cli.client.request("DELETE", f"{place_of(cli, environment)}/secrets/{secret}")
    cli.terminal.data({"id": secret, "deleted": True})
    cli.terminal.success(f"deleted {secret}")


@environment_app.command("link")
def link(
    ctx: typer.Context, secret: SecretArgument, environment: EnvironmentArgument, output: OutputOption = OutputFormat.TABLE
) -> None:
    """Give your work on an environment one of the team's secrets."""
    cli = session_of(ctx, output)
    made = cli.client.post(f"{place_of(cli, environment)}/secrets/link/{secret}", {})["data"]
    cli.terminal.data(made)
    cli.terminal.success(f"linked {made['secretName']} to {environment}")


@environment_app.command("unlink")
def unlink(
    ctx: typer.Context,
    secret: SecretArgument,
    environment: EnvironmentArgument,
    yes: YesOption = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Take a secret of the team from an environment again."""
    cli = session_of(ctx, output)
    cli.confirm(f"Take the secret {secret} from {environment}?", yes=yes)
    cli.client.request("DELETE", f"{place_of(cli, environment)}/secrets/link/{secret}")
    cli.terminal.data({"secretId": secret, "unlinked": True})
    cli.terminal.success(f"unlinked {secret} from {environment}")


def place_of(cli: Session, environment: str) -> str:
    """The address of an environment by its id, as its secrets and variables are addressed."""
    release = cli.client.get(f"{HUB}/{full_name(cli, environment)[0]}/@latest")
    return f"{HUB}/{release['data']['id']}"


def asked_value(value: str | None, source: Path | None, *, is_file: bool = False) -> str:
    """The value as it is sent. A text loses the newline at its end, which editors and `echo` add; a file keeps every byte."""
    if source is not None:
        content = sys.stdin.buffer.read() if str(source) == "-" else source.read_bytes()
        return base64.b64encode(content).decode() if is_file else content.decode().removesuffix("\n")
    return value or str(typer.prompt("Value", hide_input=True, err=True))


def changes(name: str | None, value: str | None, source: Path | None, description: str | None) -> dict[str, Any]:
    """What was asked for and nothing else."""
    wanted = {"name": name, "value": asked_value(value, source) if value or source else None, "description": description}
    if given := {key: one for key, one in wanted.items() if one is not None}:
        return given
    raise typer.BadParameter("nothing to change: give --name, --value, --from or --description")


def _show(cli: Session, found: dict[str, Any], told: str, value: str | None) -> None:
    cli.terminal.facts(found, [("id", found["id"]), ("name", found["name"]), ("description", found["description"])])
    cli.terminal.success(told)
    if value and len(value) < MASKED_LENGTH_MIN:
        cli.terminal.note(f"a value of less than {MASKED_LENGTH_MIN} characters is not masked in logs", style="yellow")
