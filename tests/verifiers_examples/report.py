"""What came of the examples: a file, and the table of it in docs/environments.md between two marks. Knows no stack."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.fixtures.places import REPOSITORY
from tests.verifiers_examples.packages import ARCHIVE, ARCHIVE_SHA256
from tests.verifiers_examples.trial import Outcome

FIGURES = REPOSITORY / "docs" / "figures" / "verifiers-examples.json"
PAGE = REPOSITORY / "docs" / "environments.md"
BEGIN, END = "<!-- examples of verifiers: begin -->\n", "<!-- examples of verifiers: end -->\n"


def report_of(commit: str, in_index: Sequence[str], outcomes: Sequence[Outcome]) -> dict[str, Any]:
    running = sum(outcome.runs for outcome in outcomes)
    return {
        "state": f"{running} of {len(outcomes)}",
        "source": {"repository": "https://github.com/PrimeIntellect-ai/verifiers", "commit": commit},
        "index": {"archive": ARCHIVE, "sha256": ARCHIVE_SHA256, "packages": list(in_index)},
        "packages": [outcome.row() for outcome in outcomes],
    }


def last_outcomes() -> dict[str, Outcome]:
    """By the digest of the package: a changed one has none."""
    return {row["sha256"]: Outcome(**row) for row in json.loads(FIGURES.read_text())["packages"]}


def write(report: dict[str, Any], target: Path) -> None:
    text = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    target.parent.mkdir(parents=True, exist_ok=True)
    for path in (target, FIGURES):
        path.write_text(text)
    page = PAGE.read_text()
    head, rest = page.split(BEGIN)
    PAGE.write_text(head + BEGIN + table(report) + END + rest.split(END)[1])


def table(report: dict[str, Any]) -> str:
    """Markdown: the examples that run, then the others by what stands in their way."""
    rows = sorted(report["packages"], key=lambda row: (not row["runs"], row["obstacle"], row["name"]))
    lines = [f"**{report['state']}** run as they are.", "", "| example | state | what the check said |", "|---|---|---|"]
    for row in rows:
        said = row["said"].replace("|", "\\|").replace("<", "&lt;")
        said = said if len(said) <= 160 else f"{said[:157]}…"
        lines.append(f"| `{row['name']}` | {'runs' if row['runs'] else row['obstacle']} | {said} |")
    return "\n".join(lines) + "\n"
