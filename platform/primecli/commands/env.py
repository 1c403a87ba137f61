"""`prime env`: the hub as a reader sees it. Sending and fetching are `push` and `pull`, repeated here."""

from typing import Annotated, Any

import typer

from primecli.commands import secrets, variables
from primecli.commands.env_checks import check, logs, status
from primecli.commands.env_info import info
from primecli.commands.env_sharing import collaborators, fork, star, unstar
from primecli.commands.init import init
from primecli.commands.install import install
from primecli.commands.push import HUB, pull, push
from primecli.environment_names import ENVIRONMENT_HELP, full_name
from primecli.output import OutputFormat, OutputOption, moment
from primecli.session import YesOption, session_of

app = typer.Typer(no_args_is_help=True, help="Environments on the hub.")
app.command("init")(init)
app.command("info")(info)
app.command("push")(push)
app.command("pull")(pull)
app.command("star")(star)
app.command("unstar")(unstar)
app.command("fork")(fork)
app.command("collaborators")(collaborators)
app.command("install")(install)
app.command("status")(status)
app.command("check")(check)
app.command("logs")(logs)
app.add_typer(secrets.environment_app, name="secret")
app.add_typer(variables.app, name="var")

EnvironmentArgument = Annotated[str, typer.Argument(help=ENVIRONMENT_HELP)]


@app.command("list")
def list_environments(
    ctx: typer.Context,
    search: Annotated[str | None, typer.Option("--search", help="Words of the name, tags, description or README.")] = None,
    owner: Annotated[str | None, typer.Option("--owner", help="Only this owner's.")] = None,
    mine: Annotated[bool, typer.Option("--mine", help="Only those of your teams.")] = False,
    starred: Annotated[bool, typer.Option("--starred", help="Only those that you gave a star.")] = False,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Only those with this tag; may be repeated.")] = None,
    visibility: Annotated[str | None, typer.Option("--visibility", help="PUBLIC or PRIVATE.")] = None,
    badge: Annotated[str | None, typer.Option("--badge", help="GREEN, RED, BUILDING or PENDING.")] = None,
    sort: Annotated[str | None, typer.Option("--sort", help="name, created_at, updated_at or stars.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100)] = 50,
    offset: Annotated[int, typer.Option("--offset", min=0)] = 0,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """List the environments that you may see."""
    cli = session_of(ctx, output)
    asked = {
        "search": search,
        "owner": owner,
        "visibility": visibility and visibility.upper(),
        "badge": badge and badge.upper(),
        "tags": tag,
        "mine_only": "true" if mine else None,
        "starred_only": "true" if starred else None,
        "sort_by": sort,
        "sort_order": "asc" if sort == "name" else None,
    }
    reply = cli.client.get(f"{HUB}/", **asked, limit=limit, offset=offset)
    columns = [
        ("environment", lambda row: f"{row['owner']['name']}/{row['name']}"),
        ("version", lambda row: row.get("latest_version")),
        ("badge", lambda row: row.get("badge")),
        ("visibility", lambda row: row["visibility"].lower()),
        ("stars", lambda row: row.get("stars")),
        ("description", lambda row: row["description"]),
        ("updated", lambda row: moment(row.get("updated_at"))),
    ]
    cli.terminal.table(reply, reply["data"], columns, empty="no environments yet; publish one with `prime push`")


@app.command("versions")
def versions(ctx: typer.Context, environment: EnvironmentArgument, output: OutputOption = OutputFormat.TABLE) -> None:
    """List the releases of an environment, newest first."""
    cli = session_of(ctx, output)
    reply = cli.client.get(f"{HUB}/{full_name(cli, environment)[0]}/versions")
    columns = [
        ("version", lambda row: row["version"]),
        ("badge", lambda row: row.get("badge")),
        ("withdrawn", _withdrawn),
        ("content hash", lambda row: row["sha256"][:12]),
        ("created", lambda row: moment(row["created_at"])),
    ]
    cli.terminal.table(reply, reply["data"]["versions"], columns, empty="no releases yet")


def _withdrawn(row: dict[str, Any]) -> str | None:
    if row.get("quarantined"):
        return "in quarantine"
    return "yanked" if row.get("yanked") else None


@app.command("lock")
def lock(ctx: typer.Context, environment: EnvironmentArgument, output: OutputOption = OutputFormat.TABLE) -> None:
    """Print the extra dependencies of a release as its check installed them, with their hashes; every run installs these."""
    cli = session_of(ctx, output)
    name, version = full_name(cli, environment)
    reply = cli.client.get(f"{HUB}/{name}/@{version or 'latest'}/badge")
    cli.terminal.data(reply)
    if not cli.terminal.is_json:
        cli.terminal.out.print(reply["data"]["requirements_lock"] or "# nothing beyond the base image", markup=False)


@app.command("yank")
def yank(
    ctx: typer.Context,
    environment: Annotated[str, typer.Argument(help="owner/name@version.")],
    yes: YesOption = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Withdraw a release: it can no longer be chosen, but what names it exactly keeps working."""
    cli = session_of(ctx, output)
    name, version = full_name(cli, environment)
    if version is None:
        raise typer.BadParameter("say which release: owner/name@version")
    cli.confirm(f"Withdraw {name}@{version}?", yes=yes)
    cli.client.request("DELETE", f"{HUB}/{name}/@{version}")
    cli.terminal.data({"environment": name, "version": version, "yanked": True})
    cli.terminal.success(f"withdrew {name}@{version}")


@app.command("delete")
def delete(
    ctx: typer.Context, environment: EnvironmentArgument, yes: YesOption = False, output: OutputOption = OutputFormat.TABLE
) -> None:
    """Remove an environment from the hub. Runs that used it keep their record."""
    cli = session_of(ctx, output)
    name, version = full_name(cli, environment)
    if version is not None:
        raise typer.BadParameter("this removes every release; to withdraw one: prime env yank")
    cli.confirm(f"Delete {name} with every release?", yes=yes)
    cli.client.request("DELETE", f"{HUB}/{name}")
    cli.terminal.data({"environment": name, "deleted": True})
    cli.terminal.success(f"deleted {name}")
