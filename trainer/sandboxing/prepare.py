"""`python -m trainer.sandboxing.prepare --runner-dir DIR`: build the base runner environments, with a line that shows life.

Knows a terminal. Refuses to know anything else: the work is `ensure_base`.
"""

import argparse
import sys
import time
from pathlib import Path

from rich.console import Console

from trainer.contracts.interfaces import LIBRARY_VERSIONS, Interface
from trainer.sandboxing.base_venv import ensure_base
from trainer.sandboxing.locks import LockTimeout
from trainer.sandboxing.uv import InstallFailed


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m trainer.sandboxing.prepare", description=__doc__.splitlines()[0])
    parser.add_argument("--runner-dir", type=Path, required=True, help="folder that holds the bases and releases/")
    options = parser.parse_args(argv)
    console = Console(stderr=True)
    try:
        for interface, version in LIBRARY_VERSIONS.items():
            _prepare(console, options.runner_dir, interface, version)
    except (InstallFailed, LockTimeout) as error:
        console.print(f"[red]runner environment failed:[/red] {error}", highlight=False)
        return 1
    return 0


def _prepare(console: Console, runner_dir: Path, interface: Interface, library: str) -> None:
    started = time.monotonic()
    with console.status("runner environment: looking for it") as status:
        base = ensure_base(runner_dir, lambda line: status.update(f"runner environment: {line}"), interface=interface)
    python = ".".join(map(str, base.python_version))
    took = f"{time.monotonic() - started:.1f} s (verifiers {library}, Python {python})"
    console.print(f"runner environment ready in {took} at {base.path}", highlight=False)


if __name__ == "__main__":
    sys.exit(main())
