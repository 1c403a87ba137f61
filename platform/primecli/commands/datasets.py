"""`prime datasets`: files of rows that runs learn from. A name stands for one content until it is deleted."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from primecli.output import CliError, OutputFormat, OutputOption
from primecli.session import Session, YesOption, session_of
from trainer.contracts.datasets import DatasetRefused, check_report, read_rows, report_of

CHUNK_BYTES = 64 * 1024
DATASETS = "/datasets"
FILE_HELP = "JSON lines: messages, prompt and completion, or text."
DatasetArgument = Annotated[str, typer.Argument(metavar="DATASET", help="Name or id (`prime datasets list`).")]

app = typer.Typer(no_args_is_help=True, help="Upload rows to learn from.")


@app.command("push")
def push(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help=FILE_HELP, dir_okay=False, exists=True)],
    name: Annotated[str | None, typer.Option("--name", help="What runs call it; default: the file's name.")] = None,
    dropped_max: Annotated[
        float, typer.Option("--dropped-max", min=0, max=1, help="Share of bad rows that may be left out.")
    ] = 0.01,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Upload a file. Every line is checked, here before anything is sent and by the server, by the same rules; the report names
    those that are left out."""
    cli = session_of(ctx, output)
    _check(file, dropped_max)
    with file.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    size_bytes = file.stat().st_size
    declared = {"name": name or file.stem.lower(), "sha256": sha256, "size_bytes": size_bytes, "dropped_max": dropped_max}
    made = cli.client.post(DATASETS, declared)
    if made["upload_url"]:
        _upload(cli, file, made["upload_url"], size_bytes)
    _report(cli, cli.client.post(f"{DATASETS}/{made['id']}/finalize"))
    cli.terminal.note(f'in a run: [[dataset]] id = "{declared["name"]}"')
    cli.show_page("/datasets")


@app.command("list")
def list_datasets(
    ctx: typer.Context,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, max=100)] = 50,
    offset: Annotated[int, typer.Option("--offset", min=0)] = 0,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """List the team's datasets, newest first."""
    cli = session_of(ctx, output)
    reply = cli.client.get(DATASETS, limit=limit, offset=offset)
    columns = [
        ("name", lambda row: row["name"]),
        ("kind", lambda row: row["kind"]),
        ("rows", lambda row: row["kept"]),
        ("dropped", lambda row: row["dropped"]),
        ("bytes", lambda row: row["size_bytes"]),
        ("id", lambda row: row["id"]),
    ]
    cli.terminal.table(reply, reply["datasets"], columns, empty="no datasets yet; `prime datasets push FILE` uploads one")


@app.command("show")
def show(
    ctx: typer.Context,
    name: DatasetArgument,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Show a dataset and the report of its import."""
    cli = session_of(ctx, output)
    _report(cli, cli.client.get(f"{DATASETS}/{name}"))


@app.command("delete")
def delete(ctx: typer.Context, name: DatasetArgument, yes: YesOption = False, output: OutputOption = OutputFormat.TABLE) -> None:
    """Delete a dataset. Refused while a run learns from it; what runs have learnt stays."""
    cli = session_of(ctx, output)
    cli.confirm(f"Delete the dataset {name}?", yes=yes)
    cli.client.request("DELETE", f"{DATASETS}/{name}")
    cli.terminal.data({"dataset": name, "deleted": True})
    cli.terminal.success(f"deleted {name}")


def _check(file: Path, dropped_max: float) -> None:
    """Raises CliError naming the lines, for a file that the server would refuse."""
    try:
        with file.open("rb") as stream:
            report = report_of((line.number, line.reason) for line in read_rows(stream))
        check_report(report, dropped_max)
    except DatasetRefused as refused:
        known = refused.report.problems if refused.report else []
        fields = [(f"line {problem.line}", problem.reason) for problem in known]
        raise CliError(f"{file}: {refused}", code="invalid_format", fields=fields) from refused


def _upload(cli: Session, file: Path, url: str, size_bytes: int) -> None:
    with cli.terminal.progress() as progress:
        task = progress.add_task(f"uploading {file.name}", total=size_bytes)

        def chunks() -> Iterator[bytes]:
            with file.open("rb") as stream:
                while chunk := stream.read(CHUNK_BYTES):
                    yield chunk
                    progress.advance(task, len(chunk))

        cli.client.upload(url, chunks(), size_bytes)


def _report(cli: Session, reply: dict[str, Any]) -> None:
    dataset, report = reply["dataset"], reply["report"]
    facts = [("dataset", dataset["name"]), ("id", dataset["id"]), ("kind", dataset["kind"]), ("sha256", dataset["sha256"])]
    counts = [("rows kept", report["kept"]), ("rows dropped", report["dropped"])]
    dropped = [(f"line {problem['line']}", problem["reason"]) for problem in report["problems"]]
    cli.terminal.facts(reply, [*facts, *counts, *dropped])
