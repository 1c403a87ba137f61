"""Whether an evaluation may pass: rules over its figures, a verdict, and the text for a pull request.

Knows rules. Refuses to compute statistics, which the server has, and to take a broken environment for a bad model: too many
rollouts without a reward are no verdict at all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from primecli.eval_tables import interval, missing_text, p_text, pass_text, signed
from primecli.output import usd

REGRESSIONS_SHOWN = 5


@dataclass(frozen=True)
class Limits:
    """`mean_min`: the mean reward must reach it. `drop_max`: how far the mean may lie below the baseline's. `is_strict`: the
    whole 95 % interval must hold, so that doubt closes the gate; otherwise a baseline rule closes on a sure loss alone."""

    mean_min: float | None = None
    drop_max: float | None = None
    missing_max: float = 0.05
    is_strict: bool = False


@dataclass(frozen=True)
class Rule:
    is_met: bool
    text: str


def missing_share(row: Mapping[str, Any]) -> float:
    """Of the samples of one evaluation; all of them where there is none with a reward."""
    statistics = row.get("statistics") or {}
    missing, rewards = sum((statistics.get("missing") or {}).values()), statistics.get("rewards_count") or 0
    return missing / (missing + rewards) if rewards else 1.0


def rules_of(comparison: Mapping[str, Any], limits: Limits) -> list[Rule]:
    """The candidate is the last evaluation of the comparison, the baseline the first where there are two."""
    candidate, pairs = comparison["evaluations"][-1], comparison["pairs"]
    rules = []
    if limits.mean_min is not None:
        rules.append(_mean_rule(candidate, limits.mean_min, is_strict=limits.is_strict))
    if limits.drop_max is not None:
        rules.append(_drop_rule(pairs[0], limits.drop_max, is_strict=limits.is_strict) if pairs else _nothing_shared())
    return rules


def _mean_rule(candidate: Mapping[str, Any], mean_min: float, *, is_strict: bool) -> Rule:
    statistics = candidate["statistics"]
    low, mean = statistics.get("ci_low"), statistics["mean"]
    bounds = f" (95 %: {interval(statistics)})" if interval(statistics) else ""
    if not is_strict:
        return Rule(mean >= mean_min, f"mean reward {mean:.3f}{bounds}, at least {mean_min:g} is asked")
    text = f"mean reward {mean:.3f}{bounds}, surely at least {mean_min:g} is asked"
    return Rule(low is not None and low >= mean_min, text)


def _drop_rule(pair: Mapping[str, Any], drop_max: float, *, is_strict: bool) -> Rule:
    difference, low, high = pair["difference"], pair["ci_low"], pair["ci_high"]
    bounds = f" (95 %: {interval(pair)}, {p_text(pair['p_value'])})" if interval(pair) else ""
    told = f"{signed(difference)} against the baseline{bounds} over {pair['examples']} examples"
    if is_strict:
        is_met = low is not None and low >= -drop_max
        return Rule(is_met, f"{told}; surely no more than {drop_max:g} below is asked")
    worst = difference if high is None else high
    return Rule(worst >= -drop_max, f"{told}; not surely more than {drop_max:g} below is asked")


def _nothing_shared() -> Rule:
    return Rule(False, "no example has a reward in both evaluations: there is nothing to compare with the baseline")


def comment(comparison: Mapping[str, Any], rules: Sequence[Rule], regressions: Sequence[Mapping[str, Any]]) -> str:
    """Markdown for a pull request."""
    is_open = all(rule.is_met for rule in rules)
    lines = [f"### {'✅ Evaluation passed' if is_open else '❌ Evaluation did not pass'}", ""]
    lines += [f"- {'✅' if rule.is_met else '❌'} {_plain(rule.text)}" for rule in rules]
    lines += ["", "| model | mean reward | 95 % | pass@k | missing | per sample |", "|---|---|---|---|---|---|"]
    lines += [_table_row(row) for row in comparison["evaluations"]]
    if regressions:
        lines += ["", "<details><summary>Worst regressions</summary>", "", "| example | change | asks |", "|---|---|---|"]
        lines += [f"| {_plain(row['example'])} | {signed(row['change'])} | {_plain(row['title'])} |" for row in regressions]
        lines += ["", "</details>"]
    return "\n".join([*lines, "", f"[All of it]({comparison['viewer_url']})", ""])


def _table_row(row: Mapping[str, Any]) -> str:
    statistics, quality = row.get("statistics") or {}, row["quality"]
    mean = "-" if quality["mean"] is None else f"{quality['mean']:.3f}"
    cells = [
        row["evaluation"].get("model_name") or row["evaluation"]["evaluation_id"],
        mean,
        interval(statistics) or "-",
        pass_text(statistics) or "-",
        missing_text(statistics) or "none",
        usd(quality["cost_per_sample_usd"]),
    ]
    return "| " + " | ".join(_plain(cell) for cell in cells) + " |"


def _plain(text: str) -> str:
    """A text of somebody else's inside Markdown: no markup, no table, no mention of anybody."""
    shown = " ".join(str(text).split())[:200]
    for sign in "\\`*_[]<>|#":
        shown = shown.replace(sign, f"\\{sign}")
    return shown.replace("@", "@\u200b")
