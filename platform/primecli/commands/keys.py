"""`prime keys`: API keys of the account. A key's text is shown once, when it is made."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from primecli.output import OutputFormat, OutputOption, moment
from primecli.session import YesOption, session_of

app = typer.Typer(no_args_is_help=True, help="API keys.")


def scopes_text(row: dict[str, Any]) -> str:
    return "everything" if row["scopes"] is None else " ".join(row["scopes"])


@app.command("list")
def list_keys(ctx: typer.Context, output: OutputOption = OutputFormat.TABLE) -> None:
    """List keys by name and first characters."""
    cli = session_of(ctx, output)
    reply = cli.client.get("/keys")
    columns = [
        ("key", lambda row: row["id"]),
        ("name", lambda row: row.get("name")),
        ("starts with", lambda row: row.get("prefix")),
        ("scopes", scopes_text),
        ("created", lambda row: moment(row.get("created_at"))),
        ("last used", lambda row: moment(row.get("last_used_at"))),
        ("expires", lambda row: moment(row.get("expires_at"))),
    ]
    cli.terminal.table(reply, reply["items"], columns, empty="no keys yet")


@app.command("create")
def create(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="What the key is for.")],
    scope: Annotated[
        list[str] | None,
        typer.Option("--scope", "-s", help="What it may do, such as `runs:read`; repeatable. Default: everything."),
    ] = None,
    expires_days: Annotated[
        int | None, typer.Option("--expires-days", min=1, max=3650, help="Days until it ends. Default: never.")
    ] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Make a key and show it once."""
    cli = session_of(ctx, output)
    expires_at = datetime.now(UTC) + timedelta(days=expires_days) if expires_days else None
    wanted = {"name": name, "scopes": scope or None, "expires_at": expires_at.isoformat() if expires_at else None}
    made = cli.client.post("/keys", wanted)
    facts = [("key", made["id"]), ("name", made["name"]), ("scopes", scopes_text(made)), ("expires", moment(made["expires_at"]))]
    cli.terminal.facts(made, [*facts, ("API key", made["key"])])
    cli.terminal.note("this is the only time that the key is shown", style="yellow")
    cli.show_page("/keys")


@app.command("revoke")
def revoke(
    ctx: typer.Context,
    key_id: Annotated[str, typer.Argument(metavar="KEY", help="The key's id.")],
    yes: YesOption = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Make a key worthless, at once."""
    cli = session_of(ctx, output)
    cli.confirm(f"Revoke key {key_id}?", yes=yes)
    cli.client.request("DELETE", f"/keys/{key_id}")
    cli.terminal.data({"id": key_id, "revoked": True})
    cli.terminal.success(f"revoked {key_id}")
