"""One person at one terminal with every client at hand: types the steps of a plan and keeps what was said and asked.

Knows the complete recipe of settings under which a public client asks nobody but the stack. Refuses to know which steps there
are.
"""

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e.client_contract.clients import Client
from tests.e2e.client_contract.plan import OURS, Step
from tests.e2e.client_contract.witness import Exchange, Witness
from tests.fixtures.live_stack import COMMANDS, Person

STEP_DEADLINE_S = 180
PLACE = re.compile(r"\{(\w+)\}")
SAID_SHOWN = 1500


@dataclass(frozen=True)
class Outcome:
    """What came of a step. `problem` is empty where all held; `exchanges` are what it asked the stack."""

    step: Step
    command: str
    problem: str
    seconds: float
    exchanges: tuple[Exchange, ...] = ()


@dataclass
class Terminal:
    """`known` fills the places of commands and grows with what steps save. `folder` is the terminal's own."""

    person: Person
    witness: Witness
    folder: Path
    known: dict[str, str]
    outcomes: list[Outcome] = field(default_factory=list)

    def take_all(self, steps: Iterable[Step]) -> None:
        for step in steps:
            self.take(step)

    def take(self, step: Step) -> None:
        """Type one command. A step that failed does not hide the next, unless that needs what it would have saved."""
        unknown = [name for name in PLACE.findall(step.command) if name not in self.known]
        if unknown:
            self.outcomes.append(Outcome(step, step.command, f"not typed: nothing has told {unknown[0]}", 0.0))
            return
        began, before = time.monotonic(), len(self.witness.exchanges)
        command = self._filled(step.command)
        problem = self._problem(step, self._run(step.client, command))
        asked = tuple(self.witness.exchanges[before:])
        self.outcomes.append(Outcome(step, command, problem, time.monotonic() - began, asked))

    def start(self, client: str, command: str, **changed: str) -> subprocess.Popen[str]:
        """A command that waits for somebody else; `changed` are variables that differ, empty ones are left out."""
        environment = {name: value for name, value in (self.environment(client) | changed).items() if value}
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        return subprocess.Popen(self._words(client, command), cwd=self.folder, env=environment, text=True, **pipes)

    def environment(self, client: str) -> dict[str, str]:
        """Every address is the stack's, and whatever is none of them ends at the witness."""
        origin, home = self.person.origin, self.folder / "home"
        home.mkdir(exist_ok=True)
        own = [] if client == OURS else [str(Client(client).bin)]
        path = os.pathsep.join([*own, str(COMMANDS), os.environ["PATH"]])
        addresses = {"PRIME_API_BASE_URL": origin, "PRIME_FRONTEND_URL": origin, "PRIME_TRACES_URL": origin}
        addresses |= {"PRIME_INFERENCE_URL": f"{origin}/api/inference/v1", "PRIME_API_BASE": f"{origin}/api/v1/rft"}
        proxy = {} if client == OURS else dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY"), self.witness.url)
        proxy |= {name.lower(): url for name, url in proxy.items()}
        # Builds take what is installed here; installers ask the stack's index alone and write into this terminal's own folder.
        index = f"{origin}/hub/{self.known['renamed']}/simple/"
        build = {"UV_NO_BUILD_ISOLATION": "1", "UV_PYTHON": sys.executable, "UV_CACHE_DIR": str(self.folder / "uv-cache")}
        build |= {"UV_DEFAULT_INDEX": index, "PIP_INDEX_URL": index, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
        target = {"VIRTUAL_ENV": str(self.folder / "venv"), "PIP_TARGET": str(self.folder / "by-pip")}
        plain = {"NO_COLOR": "1", "COLUMNS": "240", "LANG": "C.UTF-8", "PRIME_DISABLE_VERSION_CHECK": "1"}
        account = {"HOME": str(home), "PATH": path, "PRIME_API_KEY": self.person.key}
        return plain | account | addresses | proxy | build | target

    def _run(self, client: str, command: str) -> subprocess.CompletedProcess[str]:
        options = {"cwd": self.folder, "env": self.environment(client), "stdin": subprocess.DEVNULL, "timeout": STEP_DEADLINE_S}
        return subprocess.run(self._words(client, command), capture_output=True, text=True, check=False, **options)

    def _words(self, client: str, command: str) -> list[str]:
        words = shlex.split(command)
        return words if client == OURS else Client(client).command(words)

    def _filled(self, text: str) -> str:
        """With what is known in the places of the plan; other braces are a regular expression's."""
        return PLACE.sub(lambda place: self.known.get(place[1], place[0]), text)

    def _problem(self, step: Step, done: subprocess.CompletedProcess[str]) -> str:
        said = done.stdout + done.stderr
        if done.returncode not in step.exits:
            return f"ended with {done.returncode}:\n{said[-SAID_SHOWN:]}"
        for name, pattern in step.saves.items():
            if (found := re.search(pattern, said)) is None:
                return f"{name} ({pattern}) is not in:\n{said[-SAID_SHOWN:]}"
            self.known[name] = found[1]
        absent = [pattern for pattern in map(self._filled, step.holds) if not re.search(pattern, said)]
        return f"{absent} is not in:\n{said[-SAID_SHOWN:]}" if absent else ""
