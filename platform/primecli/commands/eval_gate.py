"""`prime eval gate`: an exit code for a build, and a comment for its pull request."""

from pathlib import Path
from typing import Annotated, Any

import typer

from primecli.commands.eval_run import await_evaluations
from primecli.gating import REGRESSIONS_SHOWN, Limits, comment, missing_share, rules_of
from primecli.output import CliError, ExitCode, OutputFormat, OutputOption
from primecli.session import Session, session_of


def gate(
    ctx: typer.Context,
    evaluation: Annotated[str, typer.Argument(metavar="EVAL", help="The evaluation to judge; it is waited for.")],
    min_mean: Annotated[float | None, typer.Option("--min-mean", help="The mean reward must reach this.")] = None,
    baseline: Annotated[str | None, typer.Option("--baseline", metavar="EVAL", help="Compare with this evaluation.")] = None,
    max_drop: Annotated[float, typer.Option("--max-drop", min=0.0, help="How far the mean may be below the baseline's.")] = 0.0,
    max_missing: Annotated[
        float, typer.Option("--max-missing", min=0.0, max=1.0, help="Share of rollouts without a reward; more is no verdict.")
    ] = 0.05,
    strict: Annotated[bool, typer.Option("--strict", help="The whole 95 % interval must hold: doubt closes the gate.")] = False,
    comment_file: Annotated[
        Path | None, typer.Option("--comment", dir_okay=False, help="Write Markdown for a pull request here.")
    ] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Exit 0 where an evaluation meets its limits, 7 where it does not, 6 where there is no verdict."""
    cli = session_of(ctx, output)
    limits = Limits(min_mean, None if baseline is None else max_drop, max_missing, strict)
    if limits.mean_min is None and limits.drop_max is None:
        raise CliError("give a limit: --min-mean, or --baseline", ExitCode.USAGE)
    ids = ",".join([baseline, evaluation] if baseline else [evaluation])
    _check_ended(await_evaluations(cli, ids.split(",")))
    comparison = cli.client.get("/evaluations/compare", ids=ids)
    _check_missing(comparison, limits)
    rules = rules_of(comparison, limits)
    text = comment(comparison, rules, _regressions(cli, ids) if baseline else [])
    if comment_file is not None:
        comment_file.write_text(text, encoding="utf-8")
    is_open = all(rule.is_met for rule in rules)
    told = [{"is_met": rule.is_met, "text": rule.text} for rule in rules]
    cli.terminal.data({"is_open": is_open, "rules": told, "comment": text, "comparison": comparison})
    if not cli.terminal.is_json:
        for rule in rules:
            cli.terminal.out.print(f"{'✓' if rule.is_met else '✗'} {rule.text}", markup=False)
    cli.terminal.link(comparison["viewer_url"])
    if not is_open:
        raise CliError("the gate is closed", ExitCode.GATE_CLOSED, code="gate_closed")


def _check_ended(found: list[dict[str, Any]]) -> None:
    failed = next((one for one in found if one["status"] != "COMPLETED"), None)
    if failed is not None:
        reason = failed.get("error_message") or "no reason was given"
        message = f"no verdict: the evaluation {failed['evaluation_id']} ended {failed['status']}: {reason}"
        raise CliError(message, ExitCode.RUN_FAILED, code="run_failed")


def _check_missing(comparison: dict[str, Any], limits: Limits) -> None:
    for row in comparison["evaluations"]:
        share = missing_share(row)
        if share > limits.missing_max:
            name = row["evaluation"]["evaluation_id"]
            message = f"no verdict: {share:.0%} of the rollouts of {name} have no reward, {limits.missing_max:.0%} are accepted"
            raise CliError(message, ExitCode.RUN_FAILED, code="too_many_missing")


def _regressions(cli: Session, ids: str) -> list[dict[str, Any]]:
    page = cli.client.get("/evaluations/compare/examples", ids=ids, verdict="regressed", limit=REGRESSIONS_SHOWN)
    return list(page["items"])
