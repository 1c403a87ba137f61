"""Calls of the `uv` installer: wheels only, deadlines always, its words kept for the error.

Knows the program and its exit codes. Refuses to know what is installed or why. With wheels alone uv copies files and runs none of
a package's code.
"""

import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

Progress = Callable[[str], None]
"""Takes one short line that a person can read."""

_LAST_LINES = 12


class InstallFailed(Exception):
    """The installer refused or failed; the text is its own last lines."""


def run_uv(arguments: Sequence[str], *, deadline_s: float, progress: Progress | None = None, cwd: Path | None = None) -> str:
    """stdout of `uv …`. Raises InstallFailed with uv's last lines, or when the deadline passes."""
    process = subprocess.Popen(
        [str(find_uv()), "--no-config", "--no-progress", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=_environment(),
        cwd=cwd,
    )
    # communicate() would hide the lines until the end; a person waits in front of the progress line.
    said: list[str] = []
    listener = threading.Thread(target=_listen, args=(process, said, progress), daemon=True)
    clock = threading.Timer(deadline_s, process.kill)
    listener.start()
    clock.start()
    try:
        assert process.stdout is not None
        output = process.stdout.read()
        code = process.wait()
    finally:
        overran = not clock.is_alive()
        clock.cancel()
    listener.join(timeout=5)
    if code:
        cause = f"uv ended at its deadline of {deadline_s:g} s\n" if overran else ""
        raise InstallFailed(cause + "\n".join(said[-_LAST_LINES:]))
    return output


def find_uv() -> Path:
    """The wheel's binary, else the one on PATH. InstallFailed when there is none."""
    try:
        import uv  # an optional wheel; a system-wide uv does as well
    except ImportError:
        found = shutil.which("uv")
        if found is None:
            raise InstallFailed("uv is not installed: `pip install uv`") from None
        return Path(found)
    return Path(uv.find_uv_bin())


def _listen(process: subprocess.Popen[str], said: list[str], progress: Progress | None) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if text := line.strip():
            said.append(text)
            if progress:
                progress(text)


def _environment() -> dict[str, str]:
    """Ours, without the virtual environment that we ourselves run in, and with pip's index where uv has none of its own."""
    kept = {name: value for name, value in os.environ.items() if name not in {"VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME"}}
    # The machine's trust store, as pip and the browser use it: a company's own certificate is there and not in uv's bundle.
    kept.setdefault("UV_SYSTEM_CERTS", "true")
    if "PIP_INDEX_URL" in kept:
        kept.setdefault("UV_DEFAULT_INDEX", kept["PIP_INDEX_URL"])
    return kept
