"""An environment runner on this machine: a virtual environment with the pinned library and an environment, and its process.

Knows uv, where runners are kept, and the lines of progress. Refuses to know the API. The runner sees our contracts and runner
code and nothing else of this installation.
"""

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from email.parser import HeaderParser
from pathlib import Path
from zipfile import ZipFile

from primecli.output import CliError, ExitCode
from trainer.contracts.interfaces import RUNNER_REQUIREMENTS, Interface
from trainer.contracts.local_eval import LocalJob, LocalProgress
from trainer.contracts.package_interfaces import InterfaceRefused, interface_of, member_reader

INSTALL_DEADLINE_S = 900
MARKER = "complete"
CODE_PARTS = ("__init__.py", "contracts", "runner")
LOG_TAIL_LINES = 15


def runner_python(wheel: Path, interface: Interface, *, allows_prereleases: bool = False) -> Path:
    """The interpreter of a virtual environment with the library and this wheel; made once per content."""
    requirements, options = RUNNER_REQUIREMENTS[interface], ["--prerelease", "allow"] if allows_prereleases else []
    content = json.dumps([requirements, hashlib.sha256(wheel.read_bytes()).hexdigest(), *options])
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path(os.environ.get("HOME") or Path.home()) / ".cache")
    venv = cache / "rootstock" / "runners" / hashlib.sha256(content.encode()).hexdigest()[:16]
    python = venv / "bin" / "python"
    if not (venv / MARKER).exists():
        shutil.rmtree(venv, ignore_errors=True)
        _uv("venv", "--no-project", str(venv))
        _uv("pip", "install", "--python", str(python), *options, *requirements, str(wheel))
        (venv / MARKER).touch()
    return python


def _uv(*arguments: str) -> None:
    uv = shutil.which("uv")
    if uv is None:
        raise CliError("`uv` is not installed", hint="https://docs.astral.sh/uv/ or `pip install uv`; it makes the runner")
    try:
        done = subprocess.run(
            [uv, *arguments], capture_output=True, text=True, timeout=INSTALL_DEADLINE_S, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CliError(f"the installer did not end well: {error}", code="install_failed") from error
    if done.returncode != 0:
        raise CliError(f"the runner could not be installed:\n{_tail(done.stderr)}", code="install_failed")


def module_in(wheel: Path) -> str:
    """Import name of the wheel's package."""
    with ZipFile(wheel) as archive:
        names = [name.split("/") for name in archive.namelist()]
    packages = {parts[0] for parts in names if len(parts) == 2 and parts[1] == "__init__.py"}
    modules = {parts[0].removesuffix(".py") for parts in names if len(parts) == 1 and parts[0].endswith(".py")}
    found = sorted(packages or modules)
    if not found:
        raise CliError(f"{wheel.name} holds no package", ExitCode.USAGE)
    return found[0]


def interface_in(wheel: Path, module: str) -> Interface:
    """What the package is written for, and so which version of the library plays it."""
    try:
        with ZipFile(wheel) as archive:
            info = next((name for name in archive.namelist() if name.endswith(".dist-info/METADATA")), "")
            metadata = HeaderParser().parsestr(member_reader(archive)(info))
            return interface_of(module, member_reader(archive), metadata.get_all("Requires-Dist") or [])
    except InterfaceRefused as error:
        raise CliError(f"{wheel.name}: {error}", ExitCode.USAGE) from error


def play(python: Path, job: LocalJob, log: Path) -> Iterator[LocalProgress]:
    """Progress as it comes, until every rollout is there. Raises CliError with the end of the log otherwise."""
    with _code() as code, tempfile.TemporaryDirectory() as scratch, log.open("w") as errors:
        order = Path(scratch) / "job.json"
        order.write_text(job.model_dump_json())
        process = subprocess.Popen(
            [str(python), "-m", "trainer.runner.local", str(order)],
            env={**os.environ, "PYTHONPATH": str(code)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        try:
            assert process.stdout is not None
            for line in process.stdout:
                yield LocalProgress.model_validate_json(line)
            status = process.wait()
        finally:
            # Whoever stops listening, by Ctrl-C too, leaves nothing running behind.
            if process.poll() is None:
                process.kill()
                process.wait()
    if status != 0:
        raise CliError(f"the runner ended with {status}:\n{_tail(log.read_text())}", ExitCode.RUN_FAILED, code="run_failed")


@contextmanager
def _code() -> Iterator[Path]:
    """A folder on the runner's path that holds what it needs of us, and nothing that could stand in the environment's way."""
    found = importlib.util.find_spec("trainer")
    assert found is not None and found.origin is not None
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "trainer"
        package.mkdir()
        for part in CODE_PARTS:
            (package / part).symlink_to(Path(found.origin).parent / part)
        yield Path(folder)


def _tail(text: str) -> str:
    return "\n".join(text.strip().splitlines()[-LOG_TAIL_LINES:])
