"""`reports/bench.json`: what was measured, on which machine, with which versions. Knows the file alone.

    {"rows": [{"id", "what", "value", "better", "must", "aim", "peer", "samples", "measured_at", "machine"}]}

A row that is measured again replaces its older self; rows of other runs stay, each with the machine that it was measured on.
"""

import json
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tests.bench.pairs import summary
from tests.bench.rows import Row

PACKAGES = ("torch", "transformers", "peft", "numpy")


def machine() -> dict[str, Any]:
    """Hardware and versions that a figure depends on."""
    return {
        "cpu": _cpu_name(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
    }


def _cpu_name() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()


def entry(row: Row, samples: list[float]) -> dict[str, Any]:
    return {
        "id": row.id,
        "what": row.what,
        "value": summary(samples).median,
        "better": row.bound.better,
        "must": row.bound.must,
        "aim": row.bound.aim,
        "peer": row.peer,
        "samples": samples,
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
    }


def load(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    rows: list[dict[str, Any]] = json.loads(path.read_text())["rows"]
    return rows


def store(path: Path, entries: list[dict[str, Any]]) -> None:
    """Replace the rows of these ids."""
    new = {one["id"] for one in entries}
    rows = [one for one in load(path) if one["id"] not in new] + entries
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps({"rows": sorted(rows, key=lambda one: one["id"])}, indent=1))
    partial.replace(path)
