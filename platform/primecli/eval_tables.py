"""Evaluations for people: the table of quality against dollars, the verdict of a paired test, the difference of two answers.

Knows how figures of the API read in a terminal. Refuses to compute any: the server has.
"""

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from primecli.output import Column, cell, usd


def quality_columns() -> list[Column]:
    """Of the rows of `evaluations/compare`. A star marks a row that no other beats on both quality and cost."""
    return [
        ("evaluation", lambda row: row["evaluation"]["evaluation_id"]),
        ("model", lambda row: row["evaluation"].get("model_name")),
        ("status", lambda row: row["evaluation"]["status"]),
        ("reward", lambda row: row["quality"]["mean"]),
        ("95 %", lambda row: interval(row.get("statistics") or {})),
        ("pass@k", lambda row: pass_text(row.get("statistics") or {})),
        ("missing", lambda row: missing_text(row.get("statistics") or {})),
        ("$/sample", lambda row: usd(row["quality"]["cost_per_sample_usd"])),
        ("$", lambda row: usd(row["quality"]["cost_usd"])),
        ("median s", lambda row: row["quality"]["duration_median_s"]),
        ("best for", lambda row: _best(row["quality"])),
    ]


def evaluation_facts(found: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """One evaluation, name and value a line."""
    metrics, statistics = found.get("metrics") or {}, found.get("statistics") or {}
    return [
        ("evaluation", found.get("evaluation_id")),
        ("name", found.get("name")),
        ("status", found["status"]),
        ("model", found.get("model_name")),
        ("environments", found.get("environment_names")),
        ("group", found.get("group_id")),
        ("seen by", "everybody" if found.get("is_public") else None),
        ("rollouts", found.get("total_samples")),
        ("reward", found.get("avg_score")),
        ("pass@k", pass_text(statistics)),
        ("missing", missing_text(statistics)),
        *sorted((name, value) for name, value in metrics.items() if name not in ("reward_mean", "rollouts")),
        ("error", found.get("error_message")),
    ]


def leaderboard_columns() -> list[Column]:
    """Of the rows of an environment's leaderboard."""
    return [
        ("model", lambda row: row["model"]),
        ("team", lambda row: row["team"]),
        ("reward", lambda row: row["score"]),
        ("95 %", interval),
        ("samples", lambda row: row["samples_count"]),
        ("$/sample", lambda row: usd(row["cost_per_sample_usd"])),
        ("mean of all", lambda row: f"{row['mean_score']:.3f} of {row['evaluations_count']}"),
        ("run", lambda row: "here" if row["is_hosted"] else "elsewhere"),
        ("evaluation", lambda row: row["evaluation_id"]),
    ]


def interval(found: Mapping[str, Any]) -> str | None:
    low, high = found.get("ci_low"), found.get("ci_high")
    return None if low is None or high is None else f"{low:.3f} to {high:.3f}"


def pass_text(statistics: Mapping[str, Any]) -> str | None:
    """`@1 0.50  @4 0.81`: the chance that one of k rollouts solves an example."""
    return "  ".join(f"@{rate['k']} {rate['any_of']:.2f}" for rate in statistics.get("pass_rates") or []) or None


def missing_text(statistics: Mapping[str, Any]) -> str | None:
    """`2 infrastructure, 1 failed`."""
    return ", ".join(f"{count} {reason}" for reason, count in (statistics.get("missing") or {}).items()) or None


def _best(quality: Mapping[str, Any]) -> str | None:
    names = [name for name, key in (("cost", "best_for_cost"), ("time", "best_for_time")) if quality.get(key)]
    return "*" + ", ".join(names) if names else None


def pair_line(pair: Mapping[str, Any]) -> str:
    """One test against the first evaluation, as a sentence."""
    bounds = interval(pair)
    sure = f" (95 %: {bounds}; {p_text(pair['p_value'])})" if bounds and pair.get("p_value") is not None else ""
    counts = f"{pair['improved']} improved, {pair['regressed']} regressed, {pair['same']} same"
    return f"{pair['evaluation_id']}: {signed(pair['difference'])}{sure} over {pair['examples']} examples: {counts}"


def p_text(p_value: float) -> str:
    return "p < 0.0001" if p_value < 0.0001 else f"p = {p_value:.4f}"


def signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.3f}"


def example_columns(models: list[str]) -> list[Column]:
    """Of the rows of `evaluations/compare/examples`, a column of means for each evaluation."""
    return [
        ("example", lambda row: row["example"]),
        ("verdict", lambda row: row["verdict"]),
        ("change", lambda row: signed(row["change"])),
        *[(f"{number}: {model}", _mean_at(number - 1)) for number, model in enumerate(models, start=1)],
        ("asks", lambda row: row["title"][:60]),
    ]


def _mean_at(index: int) -> Any:
    return lambda row: None if row["means"][index] is None else f"{cell(row['means'][index])} of {row['counts'][index]}"


def answer_text(sample: Mapping[str, Any]) -> str:
    """What the model said, all of its turns; a failure says so."""
    said = sample.get("completion")
    if isinstance(said, list):
        turns = [turn for turn in said if isinstance(turn, dict) and turn.get("role") in (None, "assistant")]
        said = "\n".join(str(turn.get("content") or "") for turn in turns)
    return str(said or sample.get("error") or "")


def difference_lines(first: str, second: str, names: tuple[str, str]) -> Iterator[str]:
    """A unified difference of two answers, by line."""
    return difflib.unified_diff(first.splitlines(), second.splitlines(), *names, lineterm="", n=3)
