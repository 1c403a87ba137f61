"""`python -m trainer.sandboxing.pin`: write which packages the base runner environments hold, versions and hashes, into `pins/`.

Knows the files and what they are resolved for: every platform, from the oldest Python that a runner may stand on. Refuses to know
what is installed where. To be run when `RUNNER_REQUIREMENTS` change or the packages below them are to move on; a release's own
lock is resolved against what is here.
"""

import sys
import tempfile
from pathlib import Path

from trainer.contracts.interfaces import RUNNER_REQUIREMENTS, Interface
from trainer.sandboxing.base_venv import OLDEST_PYTHON, pins_of
from trainer.sandboxing.uv import run_uv

_RESOLVE_S = 300.0


def pin(interface: Interface) -> Path:
    """Resolve the requirements of `interface` and write its file. Raises InstallFailed."""
    options = ["--universal", "--python-version", ".".join(map(str, OLDEST_PYTHON)), "--only-binary", ":all:"]
    options += ["--generate-hashes", "--no-annotate", "--no-header"]
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder) / "requirements.in"
        wanted.write_text("\n".join(RUNNER_REQUIREMENTS[interface]))
        pinned = run_uv(["pip", "compile", *options, str(wanted)], deadline_s=_RESOLVE_S)
    pins_of(interface).write_text(pinned)
    return pins_of(interface)


def main() -> None:
    for interface in RUNNER_REQUIREMENTS:
        sys.stdout.write(f"wrote {pin(interface).name}\n")


if __name__ == "__main__":
    main()
