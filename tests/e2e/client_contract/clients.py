"""The public clients as they are published, each in a virtual environment of its own that is built once.

`python -m tests.e2e.client_contract.clients --folder .rootstock/clients` builds what is missing. Knows versions and environments.
Refuses to know what is asked through them.
"""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.fixtures.places import REPOSITORY

FOLDER = Path(os.environ.get("ROOTSTOCK_TEST_CLIENTS_DIR", REPOSITORY / ".rootstock" / "clients"))
CLIENTS = {
    "prime-0.18.0": ["prime==0.18.0", "pip"],
    "prime-0.12.0": ["prime==0.12.0"],
    "prime-0.7.7": ["prime==0.7.7"],
    "prime-evals-0.2.4": ["prime-evals==0.2.4"],
    "prime-runs-0.1.4": ["prime-runs==0.1.4", "pyarrow>=18"],
}
"""What each environment holds, client first. `env install` with pip needs a pip beside the client."""
BUILD_DEADLINE_S = 600


@dataclass(frozen=True)
class Client:
    """One environment. `name` is the client with its version, as reports call it."""

    name: str

    @property
    def bin(self) -> Path:
        return FOLDER / self.name / "bin"

    def is_built(self) -> bool:
        return (FOLDER / self.name / ".built").exists()

    def build(self) -> None:
        """An environment counts once its mark is there, which is made last. Compiled now, it starts quickly at once."""
        target = FOLDER / self.name
        shutil.rmtree(target, ignore_errors=True)
        uv, python = shutil.which("uv") or str(Path(sys.executable).parent / "uv"), str(target / "bin" / "python")
        _must([uv, "venv", "--quiet", "--python", sys.executable, str(target)])
        _must([uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", python, *CLIENTS[self.name]])
        (target / ".built").touch()

    def command(self, words: Sequence[str]) -> list[str]:
        """A command of the environment: `prime …`, or `python …` for what the published package offers as a library alone."""
        return [str(self.bin / words[0]), *words[1:]]


def missing() -> list[str]:
    return [name for name in CLIENTS if not Client(name).is_built()]


def _must(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=BUILD_DEADLINE_S, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(command[:4])} … failed:\n{done.stderr[-2000:]}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Build the environments of the public clients.")
    parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in missing():
        print(f"== installing {' '.join(CLIENTS[name])}", flush=True)
        Client(name).build()


if __name__ == "__main__":
    main()
