"""`prime init` and `prime train init`: files to begin with. They write to this machine and ask no server."""

from pathlib import Path
from typing import Annotated

import typer

from primecli.dataset_rows import RowsReport, read_tasks
from primecli.output import CliError, OutputFormat, OutputOption
from primecli.scaffold import TOKENS_OF_EXAMPLE, create_environment, rendered
from primecli.session import Session, session_of

MODEL = "tiny"
ModelOption = Annotated[str, typer.Option("--model", "-m", help="Base model of the run that is prepared.")]


def init(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the environment, such as my-env.")],
    path: Annotated[Path | None, typer.Option("--path", help="Folder to write; default: the name.", file_okay=False)] = None,
    dataset: Annotated[
        Path | None,
        typer.Option("--from-dataset", help="JSON lines, Parquet, or a saved Hugging Face dataset.", exists=True),
    ] = None,
    prompt_column: Annotated[str | None, typer.Option("--prompt-column", help="Default: prompt, question, problem, …")] = None,
    answer_column: Annotated[str | None, typer.Option("--answer-column", help="Default: answer, target, solution, …")] = None,
    split: Annotated[str, typer.Option("--split", help="Of a saved dataset that has several.")] = "train",
    dropped_max: Annotated[
        float, typer.Option("--dropped-max", min=0, max=1, help="Share of bad rows that may be left out.")
    ] = 0.01,
    model: ModelOption = MODEL,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Write a new environment that passes its own tests, and a run on it; with a dataset, each row is a task."""
    cli, root = session_of(ctx, output), path or Path(name)
    report = None
    if dataset is not None:
        report = read_tasks(dataset, split=split, prompt=prompt_column, answer=answer_column)
        _require_rows(report, dropped_max)
    written = create_environment(root, name, model=model, tasks=report.tasks if report else None)
    if report is not None and not cli.terminal.is_json:
        _tell(cli, report)
    result = {"environment": name, "folder": str(root), "files": [str(file.relative_to(root)) for file in written]}
    cli.terminal.data(result | ({"report": report.as_json()} if report else {}))
    cli.terminal.success(f"{len(written)} files in {root}")
    cli.terminal.note(f"next: prime push {root}, then prime train {root / 'train.toml'} --follow")


def _require_rows(report: RowsReport, dropped_max: float) -> None:
    """A dataset of which too little can be used is refused, and each line is named."""
    dropped = len(report.problems)
    if not report.tasks or dropped > dropped_max * report.rows_count:
        told = f"{len(report.tasks)} of {report.rows_count} rows are tasks, {dropped} are not"
        fields = [(f"line {problem['line']}", problem["reason"]) for problem in report.as_json()["problems"]]
        raise CliError(told, code="dataset_refused", hint="correct the lines, or allow more with --dropped-max", fields=fields)


def _tell(cli: Session, report: RowsReport) -> None:
    told = report.as_json()
    counts = [(name, told[name]) for name in ("rows", "kept", "dropped")]
    columns = [("prompt from", report.columns.prompt), ("answer from", report.columns.answer)]
    cli.terminal.facts(told, [*counts, *columns, *((f"line {one['line']}", one["reason"]) for one in told["problems"])])


def train_init(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(help="File to write.", dir_okay=False)] = Path("train.toml"),
    environment: Annotated[str, typer.Option("--env", "-e", help="[owner/]name[@version] of the environment.")] = "my-env",
    model: ModelOption = MODEL,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Write a run configuration to begin with."""
    cli = session_of(ctx, output)
    if file.exists():
        raise CliError(f"{file} is there already", hint="name another file: prime train init FILE")
    run_name = environment.rpartition("/")[2].partition("@")[0]
    values = {"environment": environment, "model": model, "run_name": run_name, "file": file, "max_tokens": TOKENS_OF_EXAMPLE}
    file.write_text(rendered("train.toml", values), encoding="utf-8")
    cli.terminal.data({"file": str(file)})
    cli.terminal.success(f"wrote {file}")
    cli.terminal.note(f"next: prime train {file} --follow")
