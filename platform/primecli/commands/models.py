"""`prime models`: base models of the catalogue, with what training and inference cost and what the pool can serve."""

from typing import Any

import typer

from primecli.client import Client
from primecli.output import OutputFormat, OutputOption, usd
from primecli.session import session_of

app = typer.Typer(invoke_without_command=True, help="Base models, their prices and limits.")


def trainable(client: Client) -> dict[str, Any]:
    """The catalogue as the server answers it."""
    return client.get("/rft/models", team_id=client.config.team_id or None)


def train_models(ctx: typer.Context, output: OutputOption = OutputFormat.TABLE) -> None:
    """List the models that can be trained, with prices per million tokens and limits."""
    cli = session_of(ctx, output)
    reply = trainable(cli.client)
    columns = [
        ("model", lambda row: row["name"]),
        ("training", lambda row: usd(row["trainingPricePerMtok"])),
        ("input", lambda row: usd(row["inferenceInputPricePerMtok"])),
        ("output", lambda row: usd(row["inferenceOutputPricePerMtok"])),
        ("context", lambda row: row.get("contextTokens")),
        ("highest rank", lambda row: row.get("rankMax")),
        ("full", lambda row: row.get("atCapacity", False)),
    ]
    cli.terminal.table(reply, reply["models"], columns, empty="the catalogue is empty")


@app.callback()
def models(ctx: typer.Context, output: OutputOption = OutputFormat.TABLE) -> None:
    """List the models that can be trained, with prices per million tokens and limits."""
    train_models(ctx, output)
