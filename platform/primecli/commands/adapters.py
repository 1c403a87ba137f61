"""`prime adapters`: an adapter's files on this machine, for use elsewhere."""

import hashlib
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from primecli.commands.deployments import ADAPTERS, AdapterArgument
from primecli.output import CliError, ExitCode, OutputFormat, OutputOption
from primecli.session import Session, session_of

POLL_S = 0.5
DEADLINE_S = 1800.0

app = typer.Typer(no_args_is_help=True, help="Download adapters.")


@app.command("download")
def download(
    ctx: typer.Context,
    adapter_id: AdapterArgument,
    to: Annotated[Path | None, typer.Option("--to", help="Folder to write; default: the adapter's id.", file_okay=False)] = None,
    merged: Annotated[bool, typer.Option("--merged", help="The whole model with the adapter added.")] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Download an adapter as `peft` loads it, or merged into its base model; every digest is checked."""
    cli, folder = session_of(ctx, output), to or Path(adapter_id)
    export = _await(cli, adapter_id, "merged" if merged else "adapter")
    folder.mkdir(parents=True, exist_ok=True)
    for file in export["files"]:
        _fetch(cli, file, folder / file["name"])
    cli.terminal.data({"export": export, "folder": str(folder)})
    cli.terminal.success(f"{len(export['files'])} files of {adapter_id} in {folder}")


def _await(cli: Session, adapter_id: str, form: str) -> dict[str, Any]:
    export: dict[str, Any] = cli.client.post(f"{ADAPTERS}/{adapter_id}/exports", {"form": form})["export"]
    deadline = time.monotonic() + DEADLINE_S
    with cli.terminal.progress() as progress:
        progress.add_task("the files are being written", total=None)
        while export["state"] in {"QUEUED", "BUILDING"} and time.monotonic() < deadline:
            time.sleep(POLL_S)
            export = cli.client.get(f"/rft/exports/{export['id']}")["export"]
    if export["state"] != "READY":
        why = export["error"] or f"it is {export['state']}"
        raise CliError(f"the export failed: {why}", ExitCode.RUN_FAILED, code="export_failed", hint="ask again")
    return export


def _fetch(cli: Session, file: dict[str, Any], target: Path) -> None:
    """Into a file beside the target, which gets the target's name once the digest is right. One that is there already stays."""
    if target.is_file() and _digest(target) == file["sha256"]:
        return
    partial = target.with_name(f".{target.name}.partial")
    try:
        with partial.open("wb") as sink, cli.terminal.progress(unit="bytes") as progress:
            task = progress.add_task(file["name"], total=file["sizeBytes"])
            for chunk in cli.client.download(cli.client.url(file["path"])):
                sink.write(chunk)
                progress.advance(task, len(chunk))
        if _digest(partial) != file["sha256"]:
            raise CliError(f"{file['name']} arrived damaged: its digest is another", code="digest_mismatch", hint="try again")
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
