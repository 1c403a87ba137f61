"""What a row of the benchmark is, and every row that there is, those that are not run yet included.

Knows ids, bounds and peers. Refuses to know how anything is measured. `must` is the least that is promised, `aim` what is
worked for.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Bound:
    better: Literal["higher", "lower"]
    must: float
    aim: float

    def holds(self, value: float) -> bool:
        return value >= self.must if self.better == "higher" else value <= self.must

    def reached(self, value: float) -> bool:
        return value >= self.aim if self.better == "higher" else value <= self.aim


@dataclass(frozen=True, slots=True)
class Row:
    """`measure(pairs)` returns one ratio for each pair of runs. It raises Disagreement where the two sides differ in what they
    compute: such a ratio would mean nothing."""

    id: str
    what: str
    peer: str
    bound: Bound
    measure: Callable[[int], list[float]]


class Disagreement(Exception):
    """The two sides did not compute the same. The text says what differs."""


NOT_RUN = {
    "P4": "mixed-8 ÷ vLLM on CPU, at equal shapes",
    "P5": "shared engine ÷ 8 processes: tokens/s and memory",
    "P9": "stall of others during a hot swap ÷ one decode step",
    "P10": "1,000 adapters on disk ÷ 8",
    "P14": "a quiet team's first token under a flood; Jain index",
    "P15": "gateway ÷ engine direct",
    "P16": "durable leases a second with 10,000 queued runs",
    "P17": "metering rows a second ÷ bulk_create",
    "P19": "API p99 at 64 clients ÷ empty view",
}
"""Rows of the plan without a measurement in this tree."""


def chosen(rows: list[Row], only: str) -> list[Row]:
    """Rows whose id is, or begins with, one of the comma-separated names; all of them for an empty text.

    Raises KeyError for a name that fits none."""
    names = [name for name in only.split(",") if name]
    for name in names:
        if not any(_fits(row, name) for row in rows):
            raise KeyError(f"no row {name}; there are {', '.join(row.id for row in rows)}")
    return [row for row in rows if not names or any(_fits(row, name) for name in names)]


def _fits(row: Row, name: str) -> bool:
    return row.id == name or row.id.startswith(name + ".")
