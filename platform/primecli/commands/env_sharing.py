"""`prime env star`, `unstar`, `fork` and `collaborators`: what people do with each other's environments."""

from typing import Annotated

import typer

from primecli.commands.push import HUB
from primecli.environment_names import ENVIRONMENT_HELP, full_name
from primecli.output import OutputFormat, OutputOption, moment
from primecli.session import session_of

EnvironmentArgument = Annotated[str, typer.Argument(help=ENVIRONMENT_HELP)]


def star(ctx: typer.Context, environment: EnvironmentArgument, output: OutputOption = OutputFormat.TABLE) -> None:
    """Give an environment a star; `prime env list --starred` finds it again."""
    cli = session_of(ctx, output)
    name, _ = full_name(cli, environment)
    reply = cli.client.post(f"{HUB}/{name}/star")
    cli.terminal.data(reply)
    cli.terminal.success(f"{name} has {reply['data']['stars']} stars")


def unstar(ctx: typer.Context, environment: EnvironmentArgument, output: OutputOption = OutputFormat.TABLE) -> None:
    """Take your star back."""
    cli = session_of(ctx, output)
    name, _ = full_name(cli, environment)
    reply = cli.client.request("DELETE", f"{HUB}/{name}/star")
    cli.terminal.data(reply)
    cli.terminal.success(f"{name} has {reply['data']['stars']} stars")


def fork(
    ctx: typer.Context,
    environment: EnvironmentArgument,
    team: Annotated[str | None, typer.Option("--team", help="The team that gets it; default: the acting one.")] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Make the latest release of an environment the first one of an environment of your own, private at first."""
    cli = session_of(ctx, output)
    name, _ = full_name(cli, environment)
    reply = cli.client.post(f"{HUB}/{name}/fork", {"team_slug": team} if team else {})
    cli.terminal.data(reply)
    slug = reply["data"]["slug"]
    cli.terminal.success(f"forked {name} as {slug}; `prime pull {slug}` fetches its source")
    cli.show_page(f"/environments/{slug}")


def collaborators(
    ctx: typer.Context,
    environment: EnvironmentArgument,
    add: Annotated[str | None, typer.Option("--add", help="Invite this user: they may read it and push releases.")] = None,
    remove: Annotated[str | None, typer.Option("--remove", help="Take this user's rights back.")] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Show, invite or remove the users of other teams who may push to an environment of yours."""
    cli = session_of(ctx, output)
    name, _ = full_name(cli, environment)
    if add:
        cli.client.post(f"{HUB}/{name}/collaborators", {"user": add})
    if remove:
        cli.client.request("DELETE", f"{HUB}/{name}/collaborators/{remove}")
    reply = cli.client.get(f"{HUB}/{name}/collaborators")
    columns = [("user", lambda row: row["user"]), ("invited", lambda row: moment(row["invited_at"]))]
    cli.terminal.table(reply, reply["data"]["collaborators"], columns, empty="nobody beside the team")
