"""The base runner environments: verifiers and renderers, pinned, one per interface of the library, installed once per host.

Knows which packages every runner shares, to the byte, and which interpreter they stand on. Refuses to know releases. One is
complete once its marker file, written last, names the same content; anything else is removed and built again.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from trainer.contracts.interfaces import Interface
from trainer.sandboxing.locks import exclusive
from trainer.sandboxing.specs import Mount
from trainer.sandboxing.uv import InstallFailed, Progress, run_uv

OLDEST_PYTHON = (3, 11)
_SYSTEM_PYTHON = "/usr/bin/python3"
_MARKER = "rootstock-base.json"
_INSTALL_S = 900.0
_LOCK_S = 1200.0
_FOLDERS: Mapping[Interface, str] = {"taskset": "base", "load_environment": "base-older"}
_ASK_S = 20.0

_QUESTION = "import json, ssl, sys, zlib; print(json.dumps([sys.version_info[:3], sys.base_prefix]))"


@dataclass(frozen=True, slots=True)
class BaseVenv:
    """`digest` identifies the content that was asked for: pinned packages and interpreter."""

    path: Path
    digest: str
    python_version: tuple[int, int, int]
    base_prefix: Path
    interface: Interface = "taskset"

    @property
    def python(self) -> Path:
        return self.path / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        return self.path / "lib" / "python{}.{}".format(*self.python_version[:2]) / "site-packages"

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """At the same paths as outside: links, .pth files and bytecode name them. The interpreter only where /usr lacks it."""
        own = Mount(self.path, str(self.path))
        outside = not self.base_prefix.is_relative_to("/usr")
        return (own, Mount(self.base_prefix, str(self.base_prefix))) if outside else (own,)


def ensure_base(runner_dir: Path, progress: Progress | None = None, *, interface: Interface = "taskset") -> BaseVenv:
    """The base environment of `interface` below `runner_dir`, built if need be (about 15 s with a warm cache, 600 MB). Blocks;
    safe to call from several processes. Raises InstallFailed."""
    interpreter, base = _planned(runner_dir, interface)
    if not _is_complete(base):
        with exclusive(base.path.with_suffix(".lock"), deadline_s=_LOCK_S):
            if not _is_complete(base):
                _build(base, interpreter, progress)
    return base


def find_base(runner_dir: Path, interface: Interface) -> BaseVenv | None:
    """The base environment as `ensure_base` would give it, if it is there."""
    _, base = _planned(runner_dir, interface)
    return base if _is_complete(base) else None


def _planned(runner_dir: Path, interface: Interface) -> tuple[Path, BaseVenv]:
    """(interpreter, what it shall become)."""
    interpreter, version, base_prefix = choose_interpreter()
    content = {
        "pins": pins_of(interface).read_text(),
        "interpreter": str(interpreter),
        "version": version,
        "prefix": str(base_prefix),
    }
    digest = hashlib.sha256(json.dumps(content).encode()).hexdigest()
    return interpreter, BaseVenv(runner_dir.resolve() / _FOLDERS[interface], digest, version, base_prefix, interface)


def pins_of(interface: Interface) -> Path:
    """The file with every package of the base, its version and its hashes, as `trainer.sandboxing.pin` writes it: two hosts that
    build on different days hold the same."""
    return Path(__file__).with_name("pins") / f"{interface}.txt"


@cache
def choose_interpreter() -> tuple[Path, tuple[int, int, int], Path]:
    """(path, version, base prefix): the system's Python where it is new enough, since any user can run it and /usr holds all of
    it, else the interpreter that we run on."""
    for candidate in (_SYSTEM_PYTHON, os.path.realpath(sys.executable)):
        answer = _ask(candidate)
        if answer and tuple(answer[0][:2]) >= OLDEST_PYTHON:
            return Path(os.path.realpath(candidate)), tuple(answer[0]), Path(answer[1])
    raise InstallFailed(
        "no Python 3.11 or newer for the environment runner: neither /usr/bin/python3 nor the running one will do"
    )


def _ask(python: str) -> list | None:
    try:
        answer = subprocess.run([python, "-I", "-c", _QUESTION], capture_output=True, text=True, timeout=_ASK_S, check=False)
    except OSError:
        return None
    return json.loads(answer.stdout) if answer.returncode == 0 else None


def _is_complete(base: BaseVenv) -> bool:
    try:
        return json.loads((base.path / _MARKER).read_text())["digest"] == base.digest
    except (OSError, ValueError, KeyError):
        return False


def _build(base: BaseVenv, interpreter: Path, progress: Progress | None) -> None:
    say = progress or (lambda line: None)
    started = time.monotonic()
    shutil.rmtree(base.path, ignore_errors=True)
    say(f"making the runner environment on {interpreter}")
    run_uv(["venv", "--offline", "--no-project", "--python", str(interpreter), str(base.path)], deadline_s=_ASK_S)
    # Bytecode now: the environment is read-only in a box, and an import without it costs four seconds every time.
    options = ["--python", str(base.python), "--only-binary", ":all:", "--compile-bytecode"]
    packages = ["--require-hashes", "-r", str(pins_of(base.interface))]
    run_uv(["pip", "install", *options, *packages], deadline_s=_INSTALL_S, progress=say)
    frozen = run_uv(["pip", "freeze", "--python", str(base.python)], deadline_s=_ASK_S)
    marker = {"digest": base.digest, "packages": frozen.split(), "built_in_s": round(time.monotonic() - started, 1)}
    partial = base.path / f"{_MARKER}.partial"
    partial.write_text(json.dumps(marker, indent=1))
    partial.rename(base.path / _MARKER)


def frozen_packages(base: BaseVenv) -> list[str]:
    """`name==version` of everything in the base, as it was frozen when it was built."""
    return json.loads((base.path / _MARKER).read_text())["packages"]
