"""`prime eval compare`: evaluations side by side, aligned by example."""

from enum import StrEnum
from typing import Annotated, Any

import typer

from primecli.eval_tables import answer_text, difference_lines, example_columns, pair_line, quality_columns
from primecli.output import CliError, ExitCode, OutputFormat, OutputOption
from primecli.session import Session, session_of


class Verdict(StrEnum):
    IMPROVED = "improved"
    REGRESSED = "regressed"
    SAME = "same"
    MISSING = "missing"


class Order(StrEnum):
    REGRESSION = "regression"
    IMPROVEMENT = "improvement"


def compare(
    ctx: typer.Context,
    evaluations: Annotated[list[str], typer.Argument(metavar="EVAL EVAL…", help="Ids; the first is the baseline.")],
    examples: Annotated[int, typer.Option("--examples", "-n", min=0, max=1000, help="How many examples to list.")] = 20,
    verdict: Annotated[Verdict | None, typer.Option("--verdict", help="List these alone.")] = None,
    order: Annotated[Order, typer.Option("--order", help="What stands first.")] = Order.REGRESSION,
    example: Annotated[
        str | None, typer.Option("--diff", metavar="EXAMPLE", help="Show how the answers to one example differ.")
    ] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Compare evaluations of one environment with the first, example by example."""
    cli = session_of(ctx, output)
    if len(evaluations) < 2:
        raise CliError("name at least two evaluations", ExitCode.USAGE, hint="`prime eval list` shows their ids")
    ids = ",".join(evaluations)
    if example is not None:
        _show_difference(cli, ids, example)
    else:
        _show_comparison(cli, ids, {"limit": examples, "verdict": verdict, "order": order})
    cli.show_page(f"/evaluations/compare?ids={ids}")


def _show_comparison(cli: Session, ids: str, asked: dict[str, Any]) -> None:
    """JSON is the server's comparison, with its page of examples under `examples`."""
    found = cli.client.get("/evaluations/compare", ids=ids)
    page = cli.client.get("/evaluations/compare/examples", ids=ids, **asked) if asked["limit"] else {"items": [], "total": 0}
    cli.terminal.data(found | {"examples": page})
    if cli.terminal.is_json:
        return
    cli.terminal.table(found, found["evaluations"], quality_columns(), empty="nothing to compare")
    for note in found["notes"]:
        cli.terminal.note(note, style="yellow")
    for pair in found["pairs"]:
        cli.terminal.out.print(pair_line(pair), markup=False)
    models = [row["evaluation"]["model_name"] for row in found["evaluations"]]
    cli.terminal.table(page, page["items"], example_columns(models), empty="no example to list")


def _show_difference(cli: Session, ids: str, example: str) -> None:
    """Each answer of the others beside the first evaluation's, rollout by rollout."""
    found = cli.client.get("/evaluations/compare/example", ids=ids, example=example)
    cli.terminal.data(found)
    if cli.terminal.is_json:
        return
    first, *others = found["evaluations"]
    for other in others:
        for number, (before, after) in enumerate(zip(first["samples"], other["samples"], strict=False)):
            names = (f"{first['model_name']} {before.get('reward')}", f"{other['model_name']} {after.get('reward')}")
            cli.terminal.note(f"rollout {number}")
            lines = list(difference_lines(answer_text(before), answer_text(after), names))
            for line in lines or [f"  both: {answer_text(before)}"]:
                cli.terminal.out.print(line, markup=False)
