"""`python -m tests.bench [--only P1,P2.4m]`: measure rows, print them, write the report and the document.

Knows the order of things. A row that cannot be measured, since its sides disagree, is printed and fails the run; a lost row does
not: it is printed as lost.
"""

import argparse
import sys
import time
from pathlib import Path

import torch
from rich.console import Console
from transformers.utils import logging as transformers_logging

from tests.bench import (
    asynchrony,
    decoding,
    environment_installs,
    learning_runs,
    packing,
    report,
    run_memory,
    shared_prompts,
    utilisation,
)
from tests.bench.document import document, verdict
from tests.bench.pairs import summary
from tests.bench.rows import NOT_RUN, Disagreement, Row, chosen
from tests.fixtures.places import REPOSITORY

PAIRS_MIN = 5
ROWS = [
    *decoding.rows(),
    *packing.rows(),
    *shared_prompts.rows(),
    *run_memory.rows(),
    *utilisation.rows(),
    *asynchrony.rows(),
    *learning_runs.rows(),
    *environment_installs.rows(),
]
console = Console(highlight=False)


def measure(row: Row, pairs: int) -> dict | None:
    """The report's entry; None where the sides disagree."""
    began_s = time.monotonic()
    try:
        samples = row.measure(pairs)
    except Disagreement as difference:
        console.print(f"{row.id:<11} [red]not comparable:[/red] {difference}")
        return None
    found, bound = summary(samples), row.bound
    figures = f"{row.id:<11} {found.median:6.2f}  ({found.low:.2f} … {found.high:.2f})"
    bounds = f"{bound.better} is better, must {bound.must:g}, aim {bound.aim:g}"
    console.print(f"{figures}  {verdict(bound, found.median)}  ({bounds})  [dim]{time.monotonic() - began_s:.0f} s[/dim]")
    return report.entry(row, samples)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="Measure speed as ratios to peers.")
    parser.add_argument("--only", default="", help="rows, or beginnings of them, separated by commas")
    parser.add_argument("--pairs", type=int, default=PAIRS_MIN, help=f"pairs of runs, at least {PAIRS_MIN}")
    parser.add_argument("--report", type=Path, default=REPOSITORY / "reports" / "bench.json")
    parser.add_argument("--document", type=Path, default=REPOSITORY / "docs" / "benchmarks.md")
    options = parser.parse_args()
    try:
        rows = chosen(ROWS, options.only)
    except KeyError as error:
        parser.error(str(error.args[0]))
    torch.set_num_threads(1)
    transformers_logging.disable_progress_bar()
    failed = 0
    for row in rows:
        entry = measure(row, max(PAIRS_MIN, options.pairs))
        failed += entry is None
        if entry is not None:
            # After every row: a long run that is cut off keeps what it has.
            report.store(options.report, [entry])
            options.document.write_text(document(report.load(options.report), ROWS))
    console.print(f"not run: {', '.join(NOT_RUN)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
