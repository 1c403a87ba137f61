"""`make gates`: runs the tests that carry a gate's figure, at full size, and prints `reports/gates.json` as a table.

Knows that every gate that was asked for must have run and have no violation. Refuses to know what the gates check.
"""

import argparse
import os
import subprocess
import sys

from tests.fixtures.gates import SEED_VARIABLE, SIZE_VARIABLE, SIZES, read_report, write_report
from tests.suites import NO_TESTS_COLLECTED, REPOSITORY, SUITES


def run(suite: str, options: argparse.Namespace) -> bool:
    """One pytest process per suite, as `tests/suites.py` has it; a suite without such a gate is no failure."""
    environment = os.environ | {SIZE_VARIABLE: options.size, SEED_VARIABLE: str(options.seed), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", f"tests/{suite}", f"--gates={options.only or 'all'}", "-p", "no:cacheprovider"]
    print(f"== {suite}", flush=True)
    return subprocess.run(command, cwd=REPOSITORY, env=environment, check=False).returncode in {0, NO_TESTS_COLLECTED}


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the gates.")
    parser.add_argument("--only", default="", help="R2,R5: these alone")
    parser.add_argument("--size", choices=SIZES, default="large")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    wanted = set(filter(None, options.only.split(",")))
    write_report({gate_id: row for gate_id, row in read_report().items() if wanted and gate_id not in wanted})
    outcomes = [run(suite, options) for suite in SUITES]
    found = {gate_id: row for gate_id, row in read_report().items() if not wanted or gate_id in wanted}
    print("\ngate     trials  violations  seed  size")
    for row in found.values():
        print(f"{row.id:<6} {row.trials:8d} {row.violations:11d} {row.seed:5d}  {row.size}")
    silent = sorted(wanted - set(found))
    print(*[f"{gate_id} has no test that ran" for gate_id in silent], sep="\n")
    return 1 if silent or not found or not all(outcomes) or any(row.violations for row in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
