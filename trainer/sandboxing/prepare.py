"""`python -m trainer.sandboxing.prepare --runner-dir DIR`: build the base runner environment, with a line that shows it is alive.

Knows a terminal. Refuses to know anything else: the work is `ensure_base`.
"""

import argparse
import sys
import time
from pathlib import Path

from rich.console import Console

from trainer.sandboxing.base_venv import ensure_base
from trainer.sandboxing.locks import LockTimeout
from trainer.sandboxing.uv import InstallFailed


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m trainer.sandboxing.prepare", description=__doc__.splitlines()[0])
    parser.add_argument("--runner-dir", type=Path, required=True, help="folder that holds base/ and releases/")
    options = parser.parse_args(argv)
    console = Console(stderr=True)
    started = time.monotonic()
    try:
        with console.status("runner environment: looking for it") as status:
            base = ensure_base(options.runner_dir, lambda line: status.update(f"runner environment: {line}"))
    except (InstallFailed, LockTimeout) as error:
        console.print(f"[red]runner environment failed:[/red] {error}", highlight=False)
        return 1
    version = ".".join(map(str, base.python_version))
    console.print(
        f"runner environment ready in {time.monotonic() - started:.1f} s (Python {version}) at {base.path}", highlight=False
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
