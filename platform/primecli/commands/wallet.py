"""`prime wallet`: the balance, what was billed, and topping up."""

from decimal import Decimal, InvalidOperation
from typing import Annotated

import typer

from primecli.output import OutputFormat, OutputOption, moment, usd
from primecli.session import session_of

app = typer.Typer(invoke_without_command=True, help="Balance, charges and top-ups.")


@app.callback()
def wallet(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100)] = 20,
    offset: Annotated[int, typer.Option("--offset", min=0)] = 0,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Show the acting team's balance and its newest charges."""
    if ctx.invoked_subcommand:
        return
    cli = session_of(ctx, output)
    reply = cli.client.get("/billing/wallet", limit=limit, offset=offset, teamId=cli.config.team_id or None)
    if not cli.terminal.is_json:
        cli.terminal.facts(reply, [("balance", usd(reply["balance_usd"])), ("charges", reply["total_billings"])])
    columns = [
        ("last billed", lambda row: moment(row.get("last_billed_at"))),
        ("amount", lambda row: usd(row["amount_usd"])),
        ("for", lambda row: row["resource_type"]),
        ("id", lambda row: row["resource_id"]),
    ]
    cli.terminal.table(reply, reply["recent_billings"], columns, empty="nothing has been billed yet")


@app.command("top-up")
def top_up(
    ctx: typer.Context,
    amount_usd: Annotated[str, typer.Argument(metavar="AMOUNT_USD", help="US dollars, such as 25 or 9.99.")],
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Add funds to the acting team's wallet."""
    try:
        amount = Decimal(amount_usd)
    except InvalidOperation as error:
        raise typer.BadParameter(f"'{amount_usd}' is no amount", param_hint="AMOUNT_USD") from error
    if not amount.is_finite() or amount <= 0:
        raise typer.BadParameter("an amount is above zero", param_hint="AMOUNT_USD")
    cli = session_of(ctx, output)
    reply = cli.client.post("/billing/top-ups", {"amount_usd": str(amount)})
    facts = [("added", usd(str(amount))), ("status", reply.get("status")), ("balance", usd(reply.get("balance_usd")))]
    cli.terminal.facts(reply, [*facts, ("note", reply.get("notice")), ("pay at", reply.get("checkout_url"))])
    cli.show_page("/billing")


@app.command("usage")
def usage(
    ctx: typer.Context,
    subject: Annotated[str | None, typer.Option("--id", help="Only what this run, evaluation or served model caused.")] = None,
    limit: Annotated[int, typer.Option("--num", "-n", min=1, max=1000, help="Lines on a page.")] = 100,
    cursor: Annotated[str | None, typer.Option("--cursor", help="Go on behind an earlier page.")] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Itemise the bill, newest line first: quantity, price and amount per subject and meter."""
    cli = session_of(ctx, output)
    reply = cli.client.get("/billing/usage", subject_id=subject, limit=limit, cursor=cursor)
    columns = [
        ("for", lambda row: row["subject_kind"]),
        ("id", lambda row: row["subject_id"]),
        ("meter", lambda row: row["meter"]),
        ("model", lambda row: row.get("model")),
        ("quantity", lambda row: f"{row['quantity']:,}"),
        ("per million", lambda row: usd(row["usd_per_million"])),
        ("amount", lambda row: usd(row["amount_microusd"] / 1_000_000)),
    ]
    cli.terminal.table(reply, reply["items"], columns, empty="nothing has been metered yet")
    if reply["next_cursor"]:
        cli.terminal.note(f"there are more lines: --cursor {reply['next_cursor']}")


@app.command("prices")
def prices(ctx: typer.Context, output: OutputOption = OutputFormat.TABLE) -> None:
    """List what is measured and what a million of it costs."""
    cli = session_of(ctx, output)
    reply = cli.client.get("/billing/prices")
    columns = [
        ("meter", lambda row: row["meter"]),
        ("model", lambda row: row.get("model") or None),
        ("per million", lambda row: usd(row["usd_per_million"])),
    ]
    cli.terminal.table(reply, reply["prices"], columns, empty="there is no price yet")
