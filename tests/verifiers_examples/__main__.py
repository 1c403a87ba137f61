"""`make verifiers-examples FROM=CHECKOUT`: try every example on a stack of its own, and document what came of it.

CHECKOUT is a clone of the verifiers project: the package index does not carry its examples, which the report shows.
"""

import argparse
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.fixtures.live_stack import LiveStack, sign_up
from tests.fixtures.places import REPOSITORY
from tests.verifiers_examples.packages import examples_of, packages_in_index
from tests.verifiers_examples.report import last_outcomes, report_of, write
from tests.verifiers_examples.trial import Outcome, tried

REPORT = REPOSITORY / "reports" / "verifiers-examples.json"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.verifiers_examples", description=__doc__)
    parser.add_argument("--from", dest="checkout", type=Path, required=True, help="a clone of the verifiers project")
    parser.add_argument("--commit", help="its commit, where the folder is no git clone")
    parser.add_argument(
        "--only", default="", help="names, separated by commas; the others keep what the last report says of them"
    )
    asked = parser.parse_args()
    commit = asked.commit or _head(asked.checkout)
    with TemporaryDirectory() as folder:
        in_index = packages_in_index(Path(folder))
        outcomes = _tried_all(asked.checkout, Path(folder), {name for name in asked.only.split(",") if name})
    report = report_of(commit, in_index, outcomes)
    write(report, REPORT)
    print(f"{report['state']} examples run as they are; {REPORT.relative_to(REPOSITORY)} has the reasons for the rest")


def _tried_all(checkout: Path, scratch: Path, only: set[str]) -> list[Outcome]:
    known = last_outcomes() if only else {}
    stack = LiveStack.start(scratch / "stack")
    try:
        person = sign_up(stack, scratch / "home")
        outcomes = []
        for example in examples_of(checkout):
            kept = None if example.name in only else known.get(example.sha256)
            outcomes.append(kept or tried(example, person, scratch))
            print(f"{example.name}: {'runs' if outcomes[-1].runs else outcomes[-1].obstacle}", flush=True)
        return outcomes
    finally:
        stack.command("down")


def _head(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "rev-parse", "HEAD"]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout.strip()


if __name__ == "__main__":
    main()
