"""`prime var` and `prime env var`: what is set for one environment and is no secret. Spelled as the public client spells it."""

from typing import Annotated, Any

import typer

from primecli.commands.secrets import (
    DescriptionOption,
    EnvironmentArgument,
    FromOption,
    NameOption,
    NewNameOption,
    asked_value,
    changes,
    place_of,
)
from primecli.output import OutputFormat, OutputOption, moment
from primecli.session import Session, YesOption, session_of

ValueOption = Annotated[str | None, typer.Option("--value", "-v", help="The value. It is shown in lists and in logs.")]
VariableArgument = Annotated[str, typer.Argument(metavar="VARIABLE", help="Id of the variable (`prime var list`).")]

app = typer.Typer(no_args_is_help=True, help="Variables of an environment.")


@app.command("list")
def list_variables(ctx: typer.Context, environment: EnvironmentArgument, output: OutputOption = OutputFormat.TABLE) -> None:
    """List the variables that your work on an environment gets."""
    cli = session_of(ctx, output)
    reply = cli.client.get(f"{place_of(cli, environment)}/variables")
    columns = [
        ("id", lambda row: row["id"]),
        ("name", lambda row: row["name"]),
        ("value", lambda row: row["value"]),
        ("description", lambda row: row["description"]),
        ("updated", lambda row: moment(row["updatedAt"])),
    ]
    cli.terminal.table(reply, reply["data"], columns, empty="no variables yet; `prime var create` sets one")


@app.command("create")
def create(
    ctx: typer.Context,
    environment: EnvironmentArgument,
    name: NameOption,
    value: ValueOption = None,
    source: FromOption = None,
    description: DescriptionOption = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Set a variable for your work on one environment."""
    cli = session_of(ctx, output)
    body = {"name": name, "value": asked_value(value, source), "description": description}
    _show(cli, cli.client.post(f"{place_of(cli, environment)}/variables", body)["data"], "created")


@app.command("update")
def update(
    ctx: typer.Context,
    variable: VariableArgument,
    environment: EnvironmentArgument,
    name: NewNameOption = None,
    value: ValueOption = None,
    source: FromOption = None,
    description: DescriptionOption = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Change a variable; sandboxes that start from now on get the new value."""
    cli = session_of(ctx, output)
    body = changes(name, value, source, description)
    _show(cli, cli.client.request("PATCH", f"{place_of(cli, environment)}/variables/{variable}", body=body)["data"], "updated")


@app.command("delete")
def delete(
    ctx: typer.Context,
    variable: VariableArgument,
    environment: EnvironmentArgument,
    yes: YesOption = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Delete a variable."""
    cli = session_of(ctx, output)
    cli.confirm(f"Delete the variable {variable} of {environment}?", yes=yes)
    cli.client.request("DELETE", f"{place_of(cli, environment)}/variables/{variable}")
    cli.terminal.data({"id": variable, "deleted": True})
    cli.terminal.success(f"deleted {variable}")


def _show(cli: Session, found: dict[str, Any], done: str) -> None:
    cli.terminal.facts(found, [(key, found[key]) for key in ("id", "name", "value", "description")])
    cli.terminal.success(f"{done} {found['name']}")
