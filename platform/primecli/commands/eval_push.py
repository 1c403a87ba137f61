"""`prime eval push`: keep the results of an evaluation that ran elsewhere."""

from pathlib import Path
from typing import Annotated, Any

import typer

from primecli.environment_names import full_name
from primecli.foreign_results import Results, batches, read_results, record, recorded
from primecli.output import CliError, ExitCode, OutputFormat, OutputOption
from primecli.session import Session, session_of

SKIPPED_SHOWN = 5


def push(
    ctx: typer.Context,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Holds metadata.json and results.jsonl.")] = Path(),
    environment: Annotated[str | None, typer.Option("--env", help="[owner/]name; otherwise what metadata.json names.")] = None,
    evaluation: Annotated[str | None, typer.Option("--eval", metavar="EVAL", help="Push into this one.")] = None,
    name: Annotated[str | None, typer.Option("--name")] = None,
    price_input: Annotated[float | None, typer.Option("--price-input", min=0.0, help="USD per million tokens.")] = None,
    price_output: Annotated[float | None, typer.Option("--price-output", min=0.0, help="USD per million tokens.")] = None,
    public: Annotated[bool, typer.Option("--public", help="Show it to everybody who may see the environment.")] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Push a folder of results. A push that broke off goes on; one that is complete is not made twice."""
    cli = session_of(ctx, output)
    results = read_results(folder)
    _tell_skipped(cli, results)
    prices = _prices(price_input, price_output)
    found = push_folder(
        cli, folder, results, evaluation=evaluation, environment=environment, name=name, prices=prices, is_public=public
    )
    cli.terminal.data(found)
    cli.show_page(f"/evaluations/{found['evaluation_id']}")


def push_folder(
    cli: Session,
    folder: Path,
    results: Results,
    *,
    evaluation: str | None = None,
    environment: str | None = None,
    name: str | None = None,
    prices: dict[str, Any] | None = None,
    is_public: bool = False,
) -> dict[str, Any]:
    """The evaluation that holds the folder's results, after pushing what it lacks."""
    before = recorded(folder)
    if evaluation is None and before.get("sha256") == results.sha256:
        found = cli.client.get(f"/evaluations/{before['evaluation_id']}")
        cli.terminal.success(f"these results are there already: {found['evaluation_id']}")
        return found
    told = {"name": name, "is_public": is_public, "prices": prices or {}}
    eval_id = evaluation or _unfinished(cli, before) or _open(cli, results, environment, **told)
    found = _push_results(cli, folder, results, eval_id)
    cli.terminal.success(f"pushed {len(results.samples)} samples to {eval_id}")
    return found


def _push_results(cli: Session, folder: Path, results: Results, eval_id: str) -> dict[str, Any]:
    """All samples, then the end. What was sent before is overwritten by itself."""
    record(folder, eval_id)
    with cli.terminal.progress(unit="samples") as progress:
        bar = progress.add_task("pushing", total=len(results.samples))
        for batch in batches(results.samples):
            cli.client.post(f"/evaluations/{eval_id}/samples", {"samples": batch})
            progress.advance(bar, len(batch))
    found = cli.client.post(f"/evaluations/{eval_id}/finalize", {"metrics": results.metrics})
    record(folder, eval_id, results.sha256)
    return found


def _prices(input_price: float | None, output_price: float | None) -> dict[str, Any]:
    if input_price is None or output_price is None:
        return {}
    return {"prices": {"input_usd_per_mtok": input_price, "output_usd_per_mtok": output_price}}


def _open(
    cli: Session, results: Results, environment: str | None, *, name: str | None, is_public: bool, prices: dict[str, Any]
) -> str:
    given = environment or results.environment
    if not given:
        raise CliError("metadata.json names no environment", ExitCode.USAGE, hint="--env owner/name says which it is of")
    slug, version = full_name(cli, given)
    found = cli.client.get(f"/environmentshub/{slug}/@{version or 'latest'}")["data"]
    body = {
        "name": name or f"{slug} with {results.model}"[:255],
        "model_name": results.model[:255],
        "environments": [{"id": found["id"]}],
        "framework": "verifiers",
        "is_public": is_public,
        "metadata": results.described | ({"version": version} if version else {}) | prices,
    }
    return str(cli.client.post("/evaluations/", body)["evaluation_id"])


def _unfinished(cli: Session, before: Any) -> str | None:
    """The evaluation that an earlier push of this folder has left open."""
    if not before.get("evaluation_id") or before.get("sha256"):
        return None
    try:
        found = cli.client.get(f"/evaluations/{before['evaluation_id']}")
    except CliError as error:
        if error.exit_code == ExitCode.NOT_FOUND:
            return None
        raise
    return str(found["evaluation_id"]) if found["status"] == "RUNNING" else None


def _tell_skipped(cli: Session, results: Results) -> None:
    for number, problem in results.skipped[:SKIPPED_SHOWN]:
        cli.terminal.note(f"line {number} is left out: {problem}", style="yellow")
    if len(results.skipped) > SKIPPED_SHOWN:
        cli.terminal.note(f"and {len(results.skipped) - SKIPPED_SHOWN} more lines", style="yellow")
