"""`prime webhook`: addresses that are told what happened to the team's runs, evaluations, releases and deployments.

A signing secret is printed once, where it is made. Knows the API's fields; refuses to receive anything.
"""

import time
from typing import Annotated, Any

import typer

from primecli.output import CliError, ExitCode, OutputFormat, OutputOption, moment
from primecli.session import Session, YesOption, session_of

WEBHOOKS = "/webhooks"
PAGE = "/team?tab=webhooks"
POLL_S = 0.5
TEST_WAIT_S = 20.0
"""The worker is rung at once and looks every five seconds; an attempt has five."""

UrlArgument = Annotated[str, typer.Argument(metavar="URL", help="Where events are sent: an https:// address.")]
EventOption = Annotated[list[str] | None, typer.Option("--event", "-e", help="An event that is told; repeat it. Default: all.")]
DescriptionOption = Annotated[str | None, typer.Option("--description", "-d", help="What it is for.")]
WebhookArgument = Annotated[str, typer.Argument(metavar="WEBHOOK", help="Id of a webhook (`prime webhook list`).")]
DeliveryArgument = Annotated[str, typer.Argument(metavar="DELIVERY", help="Id of a delivery (`prime webhook deliveries`).")]

app = typer.Typer(no_args_is_help=True, help="Addresses that are told what happened.")


@app.command("list")
def list_webhooks(ctx: typer.Context, output: OutputOption = OutputFormat.TABLE) -> None:
    """List the team's webhooks, without their secrets."""
    cli = session_of(ctx, output)
    reply = cli.client.get(WEBHOOKS)
    columns = [
        ("id", lambda row: row["id"]),
        ("address", lambda row: row["url"]),
        ("events", lambda row: ", ".join(row["event_types"]) or "all"),
        ("state", _state),
        ("description", lambda row: row["description"]),
    ]
    cli.terminal.table(reply, reply["webhooks"], columns, empty="no webhooks yet; `prime webhook create URL` makes one")


@app.command("create")
def create(
    ctx: typer.Context,
    url: UrlArgument,
    event: EventOption = None,
    description: DescriptionOption = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Tell an address of events. The secret that signs them is printed here and never again."""
    cli = session_of(ctx, output)
    reply = cli.client.post(WEBHOOKS, {"url": url, "event_types": event or [], "description": description or ""})
    _show_secret(cli, reply, f"try it: prime webhook test {reply['webhook']['id']}")
    cli.show_page(PAGE)


@app.command("update")
def update(
    ctx: typer.Context,
    webhook: WebhookArgument,
    url: Annotated[str | None, typer.Option("--url", help="Another address.")] = None,
    event: EventOption = None,
    description: DescriptionOption = None,
    enabled: Annotated[bool | None, typer.Option("--enable/--disable", help="Send again, or nothing more.")] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Change a webhook, or switch it off and on."""
    cli = session_of(ctx, output)
    wanted = {"url": url, "event_types": event or None, "description": description, "is_enabled": enabled}
    body = {name: value for name, value in wanted.items() if value is not None}
    if not body:
        raise typer.BadParameter("nothing to change: give --url, --event, --description, --enable or --disable")
    reply = cli.client.request("PATCH", f"{WEBHOOKS}/{webhook}", body=body)
    _show(cli, reply)
    cli.terminal.success(f"updated {webhook}")


@app.command("delete")
def delete(
    ctx: typer.Context, webhook: WebhookArgument, yes: YesOption = False, output: OutputOption = OutputFormat.TABLE
) -> None:
    """Delete a webhook and what is pending for it."""
    cli = session_of(ctx, output)
    cli.confirm(f"Delete the webhook {webhook}?", yes=yes)
    cli.client.request("DELETE", f"{WEBHOOKS}/{webhook}")
    cli.terminal.data({"id": webhook, "deleted": True})
    cli.terminal.success(f"deleted {webhook}")


@app.command("rotate")
def rotate(
    ctx: typer.Context,
    webhook: WebhookArgument,
    overlap_hours: Annotated[
        int, typer.Option("--overlap-hours", min=0, max=168, help="For so long the secret of before signs as well.")
    ] = 24,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Sign with a new secret, printed here and never again."""
    cli = session_of(ctx, output)
    reply = cli.client.post(f"{WEBHOOKS}/{webhook}/rotate", {"overlap_hours": overlap_hours})
    until = moment(reply["webhook"]["previous_secret_until"])
    _show_secret(cli, reply, f"the secret of before signs until {until}" if until else "the secret of before signs no more")


@app.command("deliveries")
def deliveries(
    ctx: typer.Context,
    webhook: WebhookArgument,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=1000)] = 20,
    cursor: Annotated[str, typer.Option("--cursor", help="`next_cursor` of the page before.")] = "",
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """List what was or is to be sent, newest first."""
    cli = session_of(ctx, output)
    reply = cli.client.get(f"{WEBHOOKS}/{webhook}/deliveries", limit=limit, cursor=cursor or None)
    columns = [
        ("id", lambda row: row["id"]),
        ("event", lambda row: row["event_type"]),
        ("state", lambda row: row["state"]),
        ("attempts", lambda row: row["attempts"]),
        ("answer", lambda row: row["response_status"] or row["error"]),
        ("last attempt", lambda row: moment(row["attempted_at"])),
        ("next attempt", lambda row: moment(row["next_attempt_at"])),
    ]
    cli.terminal.table(reply, reply["items"], columns, empty="nothing yet; `prime webhook test` sends something")


@app.command("redeliver")
def redeliver(
    ctx: typer.Context, webhook: WebhookArgument, delivery: DeliveryArgument, output: OutputOption = OutputFormat.TABLE
) -> None:
    """Send an event once more, under the same id, and wait for the first attempt."""
    cli = session_of(ctx, output)
    _follow(cli, webhook, cli.client.post(f"{WEBHOOKS}/{webhook}/deliveries/{delivery}/redeliver"))


@app.command("test")
def test(ctx: typer.Context, webhook: WebhookArgument, output: OutputOption = OutputFormat.TABLE) -> None:
    """Send an event `webhook.test` and wait for the first attempt."""
    cli = session_of(ctx, output)
    _follow(cli, webhook, cli.client.post(f"{WEBHOOKS}/{webhook}/test"))


def _follow(cli: Session, webhook: str, reply: dict[str, Any]) -> None:
    """Until an attempt has been made, but not for ever."""
    deadline = time.monotonic() + TEST_WAIT_S
    while _is_untried(reply["delivery"]) and time.monotonic() < deadline:
        time.sleep(POLL_S)
        reply = cli.client.get(f"{WEBHOOKS}/{webhook}/deliveries/{reply['delivery']['id']}")
    told = reply["delivery"]
    facts = [("delivery", told["id"]), ("event", told["event_id"]), ("state", told["state"]), ("status", told["response_status"])]
    cli.terminal.facts(reply, [*facts, ("answer", told["response_text"]), ("error", told["error"]), ("ms", told["duration_ms"])])
    if told["state"] != "DELIVERED":
        why = told["error"] or (
            f"it answered {told['response_status']}" if told["response_status"] else "no attempt was made yet"
        )
        raise CliError(f"not delivered: {why}", ExitCode.RUN_FAILED, code="not_delivered")
    cli.terminal.success("delivered")


def _is_untried(delivery: dict[str, Any]) -> bool:
    """Pending, and no attempt has come to its end."""
    return delivery["state"] == "PENDING" and delivery["response_status"] is None and not delivery["error"]


def _state(row: Any) -> str:
    if not row["is_enabled"]:
        return f"disabled: {row['disabled_reason']}" if row["disabled_reason"] else "disabled"
    return f"failing since {moment(row['failing_since'])}" if row["failing_since"] else "enabled"


def _show(cli: Session, reply: dict[str, Any]) -> None:
    row = reply["webhook"]
    events = ", ".join(row["event_types"]) or "all"
    cli.terminal.facts(reply, [("id", row["id"]), ("address", row["url"]), ("events", events), ("state", _state(row))])


def _show_secret(cli: Session, reply: dict[str, Any], note: str) -> None:
    row = reply["webhook"]
    cli.terminal.facts(reply, [("id", row["id"]), ("address", row["url"]), ("secret", reply["secret"])])
    cli.terminal.note("keep the secret now: it is not shown again", style="yellow")
    cli.terminal.note(note)
