"""One example on a live stack: pushed as it is, checked, and evaluated where the check is green. Knows the `prime` command alone.

A reason is the platform's own words, and the kind of obstacle that they name.
"""

import json
import re
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.fixtures.live_stack import Person
from tests.verifiers_examples.packages import Example

EXAMPLES = 2
MAX_TOKENS = 16
OBSTACLES = (
    ("needs a newer Python", r"does not satisfy Python|asks for Python"),
    ("has requirements that do not install", r"cannot be installed"),
    ("needs a container", r"container"),
    ("downloads a data set", r"load_dataset|datasets|data ?set|[Dd]ownloader"),
    ("needs a network", r"network|name resolution|[Cc]onnect|resolve host"),
    ("needs a model that reads pictures", r"image_url|picture|reads text alone"),
    ("is no taskset", r"exports no Taskset|defines no `__all__`"),
    ("fails on what a canned model says", r"sample rollouts failed|the rollout of task"),
)
OTHER = "another reason"


@dataclass(frozen=True)
class Outcome:
    name: str
    sha256: str
    runs: bool
    obstacle: str = ""
    said: str = ""
    """What the platform said; for one that runs, what its check saw."""
    evaluated: int = 0
    """Rollouts of the evaluation, none of which failed."""

    def row(self) -> dict[str, Any]:
        return asdict(self)


def tried(example: Example, person: Person, scratch: Path) -> Outcome:
    folder = scratch / example.folder.name
    shutil.copytree(example.folder, folder)
    pushed = person.prime("push", str(folder))
    if pushed.returncode:
        found = _verdict(example, person)
        return _refused(example, person, (found or {}).get("summary") or pushed.stderr, found)
    said = (_verdict(example, person) or {}).get("summary", "")
    options = ("-m", "tiny", "-n", str(EXAMPLES), "--max-tokens", str(MAX_TOKENS), "--follow", "--output", "json")
    evaluated = person.prime("eval", "run", f"{person.owner}/{example.name}", *options)
    if evaluated.returncode:
        return _refused(example, person, f"{said}, and its evaluation ended so: {evaluated.stderr}", None)
    return Outcome(example.name, example.sha256, runs=True, said=said, evaluated=EXAMPLES)


def _verdict(example: Example, person: Person) -> dict[str, Any] | None:
    """None for an example that was refused before its check."""
    asked = person.prime("env", "status", f"{person.owner}/{example.name}", "--output", "json")
    return json.loads(asked.stdout)["data"]["verdict"] if asked.returncode == 0 else None


def _refused(example: Example, person: Person, text: str, verdict: dict[str, Any] | None) -> Outcome:
    said = plain(text, person)
    return Outcome(example.name, example.sha256, runs=False, obstacle=obstacle_of(said, verdict), said=said[:600])


def plain(text: str, person: Person) -> str:
    """One line, without the names that the trial's person and machine have. Addresses are no paths and stay."""
    unowned = text.replace(f"{person.owner}/", "")
    words = re.sub(r"(?<![:/\w])(/[\w.@+-]+){2,}", lambda path: f"…/{path[0].rpartition('/')[2]}", unowned)
    return " ".join(words.replace("✗", " ").split())


def obstacle_of(said: str, verdict: dict[str, Any] | None) -> str:
    """What the check recorded as a need comes before what its words name."""
    needs = ((verdict or {}).get("compatibility") or {}).get("needs") or {}
    if needs.get("container"):
        return "needs a container"
    named = next((name for name, words in OBSTACLES if re.search(words, said)), OTHER)
    return "needs a network" if named == OTHER and needs.get("network") else named
