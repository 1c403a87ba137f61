"""`docs/benchmarks.md` from the report: every row, wins and losses alike, and what was not measured. Knows Markdown."""

from collections import defaultdict
from typing import Any

from tests.bench.pairs import summary
from tests.bench.rows import NOT_RUN, Bound, Row

HEAD = """# Benchmarks

Written by `make bench` from `reports/bench.json`; figures by hand would be worth nothing.

A row is a ratio of two sides that run in turn (A B A B …) in one process: the same weights, prompts, lengths and dtype (fp32),
one thread, CPU time of that process. It counts only where both sides agree: greedy tokens equal for 99 % of positions up to a
row's first difference, trained weights within 1 % of their change, and every tenant's answer other than the base model's. Models
have random weights: `4m` is 4 layers of width 256, `30m` 8 layers of width 512, both with a vocabulary of 2,048. Small models
flatter whoever spends little on Python, which is why there are two sizes. Some rows are measured otherwise: P8 by the peak memory
of processes, P13 by the wall clock, P11 on a virtual clock with scripted machines around the real orchestrator, P12 by the reward
of real training runs on such a clock, where a pair is a seed, P18 by the CPU time of the processes that install.
What else a machine did meanwhile shows in the spread.

`must` is what a release has to reach, `aim` what is worked for. `lost` means that `must` is not reached.
"""


def verdict(bound: Bound, value: float) -> str:
    if bound.reached(value):
        return "aim reached"
    return "holds" if bound.holds(value) else "**lost**"


def bound_of(entry: dict[str, Any]) -> Bound:
    return Bound(entry["better"], entry["must"], entry["aim"])


def document(entries: list[dict[str, Any]], rows: list[Row]) -> str:
    """`rows` is every row that can be measured: those without an entry are named."""
    parts = [HEAD]
    for machine, group in _by_machine(entries).items():
        parts += [machine, "", *_table(group), ""]
    measured = {entry["id"] for entry in entries}
    parts += ["## Not run", "", "`make bench` measures these, and nobody has yet:", ""]
    parts += [f"- {row.id}: {row.what}" for row in rows if row.id not in measured]
    parts += ["", "Planned, and without a way to measure them yet:", ""]
    parts += [f"- {name}: {what}" for name, what in NOT_RUN.items()]
    return "\n".join(parts) + "\n"


def _by_machine(entries: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for entry in entries:
        known = dict(entry["machine"])
        hardware = f"## {known.pop('cpu')}, {known.pop('cores')} cores"
        groups[hardware + "\n\n" + ", ".join(f"{name} {version}" for name, version in known.items()) + "."].append(entry)
    return groups


def _table(rows: list[dict[str, Any]]) -> list[str]:
    lines = ["| row | ratio | peer | better | median | spread | must | aim | |", "|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        found = summary(row["samples"])
        spread = f"{found.low:.2f} … {found.high:.2f} ({len(row['samples'])} pairs)"
        word = verdict(bound_of(row), found.median)
        cells = [row["id"], row["what"], row["peer"], row["better"], f"{found.median:.2f}", spread, row["must"], row["aim"], word]
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return lines
