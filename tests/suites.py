"""Runs the test suites one after the other and prints the seconds and the counts of each.

Knows the suites' order and what a skip means: when CI=true a skipped test fails the run unless `tests/allowed_skips.txt` names
it with a reason. Refuses to know what the tests check.
"""

import argparse
import os
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
REPORTS = REPOSITORY / "reports"
SUITES = ("unit", "contract", "functional", "security", "reliability", "numerics", "e2e")
SHARED = ["-n", "2", "--dist", "worksteal"]
"""Two processes share a suite, each with services of its own."""

NO_TESTS_COLLECTED = 5


@dataclass
class Result:
    suite: str
    seconds: float
    passed: int = 0
    failed: int = 0
    skipped: list[str] = field(default_factory=list)
    broken: bool = False


def run_suite(suite: str, *, heavy: bool, extra: list[str]) -> Result:
    """One pytest session per suite: a suite's database and threads cannot leak into the next."""
    report = REPORTS / f"tests-{suite}.xml"
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", f"tests/{suite}", f"--junitxml={report}", "-p", "no:cacheprovider"]
    command += [*SHARED, *extra]
    if not heavy:
        command += ["-m", "not heavy"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "TOKENIZERS_PARALLELISM": "false"}
    began = time.monotonic()
    code = subprocess.run(command, cwd=REPOSITORY, env=environment, check=False).returncode
    result = Result(suite, time.monotonic() - began)
    if report.exists():
        _count(report, result)
    result.broken = code not in {0, NO_TESTS_COLLECTED} and result.failed == 0
    return result


def _count(report: Path, result: Result) -> None:
    # The file was written by our own pytest process a moment ago.
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None:
            result.failed += 1
        elif (skip := case.find("skipped")) is not None:
            result.skipped.append(f"{case.get('classname')}::{case.get('name')}: {skip.get('message', '')[:200]}")
        else:
            result.passed += 1


def forbidden_skips(results: list[Result]) -> list[str]:
    if os.environ.get("CI") != "true":
        return []
    lines = (REPOSITORY / "tests" / "allowed_skips.txt").read_text().splitlines()
    names = [name for line in lines if (name := line.split("#", 1)[0].strip())]
    # pytest's report spells a file as a module.
    allowed = [name.removesuffix(".py").replace("/", ".") for name in names]
    return [skip for result in results for skip in result.skipped if not any(name in skip for name in allowed)]


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the test suites.")
    parser.add_argument("suites", nargs="*", default=list(SUITES), help=f"any of: {', '.join(SUITES)}")
    parser.add_argument("--heavy", action="store_true", help="include tests marked heavy")
    options, extra = parser.parse_known_args()
    REPORTS.mkdir(exist_ok=True)
    present = [suite for suite in options.suites if any((REPOSITORY / "tests" / suite).rglob("test_*.py"))]
    results = []
    for suite in present:
        print(f"== {suite}", flush=True)
        results.append(run_suite(suite, heavy=options.heavy, extra=extra))
    print("\nsuite          seconds  passed  failed  skipped")
    for result in results:
        note = "  (did not finish)" if result.broken else ""
        print(f"{result.suite:<14} {result.seconds:7.1f} {result.passed:7d} {result.failed:7d} {len(result.skipped):8d}{note}")
    refused = forbidden_skips(results)
    for skip in refused:
        print(f"skip not allowed in CI: {skip}")
    passed, failed = sum(r.passed for r in results), sum(r.failed for r in results)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or refused or any(result.broken for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
