"""`prime teams` and `prime switch`: which team commands act for."""

from typing import Annotated, Any

import typer

from primecli.output import CliError, ExitCode, OutputFormat, OutputOption, moment
from primecli.session import Session, session_of

PERSONAL = "personal"

app = typer.Typer(no_args_is_help=True, help="Teams, their members, and the acting team.")


def _teams(cli: Session) -> dict[str, Any]:
    return cli.client.get("/user/teams", offset=0, limit=100)


@app.command("list")
def list_teams(ctx: typer.Context, output: OutputOption = OutputFormat.TABLE) -> None:
    """List the teams that you belong to."""
    cli = session_of(ctx, output)
    reply = _teams(cli)
    columns = [
        ("team", lambda row: row["teamId"]),
        ("name", lambda row: row["name"]),
        ("owner name", lambda row: row.get("slug")),
        ("role", lambda row: row["role"].lower()),
        ("acting", lambda row: row["teamId"] == cli.config.team_id),
        ("created", lambda row: moment(row["createdAt"])),
    ]
    cli.terminal.table(reply, reply["data"], columns, empty="no teams but your own")


@app.command("create")
def create(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="The team's name.")],
    slug: Annotated[str | None, typer.Option("--slug", help="Owner name of its environments.")] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Make a team of which you are the admin."""
    cli = session_of(ctx, output)
    reply = cli.client.post("/teams", {"name": name} | ({"slug": slug} if slug else {}))
    made = reply["data"]
    cli.terminal.facts(reply, [("team", made["id"]), ("name", made["name"]), ("owner name", made["slug"])])
    cli.terminal.note(f"act for it with: prime switch {made['slug']}")
    cli.show_page("/team")


@app.command("members")
def members(
    ctx: typer.Context,
    team: Annotated[str | None, typer.Argument(help="Id or owner name; default: the acting team.")] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """List the members of a team."""
    cli = session_of(ctx, output)
    team_id = _find(cli, team)["teamId"] if team else cli.config.team_id
    if not team_id:
        raise CliError("you act for yourself; name a team", ExitCode.USAGE)
    reply = cli.client.get(f"/teams/{team_id}/members", offset=0, limit=100)
    columns = [
        ("user", lambda row: row["userId"]),
        ("name", lambda row: row["userName"]),
        ("address", lambda row: row["userEmail"]),
        ("role", lambda row: row["role"].lower()),
        ("joined", lambda row: moment(row["joinedAt"])),
    ]
    cli.terminal.table(reply, reply["data"], columns, empty="no members")


@app.command("switch")
def switch(
    ctx: typer.Context,
    team: Annotated[str, typer.Argument(help="Id or owner name of a team, or 'personal'.")],
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Choose the team that commands act for; remembered."""
    cli = session_of(ctx, output)
    if team == PERSONAL:
        cli.config.save(team_id=None, team_name=None, team_role=None)
        chosen = {"teamId": None, "name": PERSONAL}
    else:
        chosen = _find(cli, team)
        cli.config.save(team_id=chosen["teamId"], team_name=chosen["name"], team_role=chosen["role"])
    cli.terminal.data({"data": chosen})
    cli.terminal.success(f"acting for {chosen['name']}")


def _find(cli: Session, team: str) -> dict[str, Any]:
    for row in _teams(cli)["data"]:
        if team in (row["teamId"], row.get("slug"), row["name"]):
            return dict(row)
    raise CliError(f"you belong to no team '{team}'", ExitCode.NOT_FOUND, code="not_found")
