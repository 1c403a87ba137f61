"""`prime install`: an environment into a Python environment of this machine.

The release's own wheel is installed, not a name from an index, so that nothing else of that name can come in its place.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from primecli.commands.push import HUB, download_source
from primecli.environment_names import ENVIRONMENT_HELP, full_name
from primecli.output import CliError, OutputFormat, OutputOption
from primecli.packaging import build_wheel, read_project, unpack_source
from primecli.session import Session, session_of

INSTALL_DEADLINE_S = 900


def install(
    ctx: typer.Context,
    environment: Annotated[str, typer.Argument(help=ENVIRONMENT_HELP)],
    python: Annotated[
        Path | None,
        typer.Option("--python", help="Interpreter to install for; default: the active virtual environment's."),
    ] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Install an environment, with its dependencies, into a Python environment."""
    cli = session_of(ctx, output)
    name, version = full_name(cli, environment)
    found = cli.client.get(f"{HUB}/{name}/@{version or 'latest'}")["data"]
    interpreter = python or _interpreter()
    with TemporaryDirectory() as scratch:
        wheel = fetch_wheel(cli, found, Path(scratch))
        _install(interpreter, wheel, allows_prereleases=bool(found.get("allows_prereleases")))
    release = {"environment": name, "version": found["semantic_version"], "wheel": wheel.name, "python": str(interpreter)}
    cli.terminal.data(release)
    cli.terminal.success(f"installed {name}@{found['semantic_version']} for {interpreter}")


def fetch_wheel(cli: Session, found: dict[str, Any], scratch: Path) -> Path:
    """The published wheel; of a private environment one that is built from its source, which the key opens."""
    if not found.get("wheel_url"):
        source = scratch / "source"
        unpack_source(download_source(cli, found, scratch), source)
        return build_wheel(read_project(source)).path
    target = scratch / Path(found["wheel_url"].partition("?")[0]).name
    with target.open("wb") as stream:
        for chunk in cli.client.download(found["wheel_url"]):
            stream.write(chunk)
    return target


def _install(interpreter: Path, wheel: Path, *, allows_prereleases: bool) -> None:
    uv = shutil.which("uv")
    front = [uv, "pip", "install", "--python", str(interpreter)] if uv else [str(interpreter), "-m", "pip", "install"]
    if allows_prereleases:
        front += ["--prerelease", "allow"] if uv else ["--pre"]
    try:
        done = subprocess.run(
            [*front, str(wheel)],
            capture_output=True,
            text=True,
            timeout=INSTALL_DEADLINE_S,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CliError(f"the installer did not end well: {error}", code="install_failed") from error
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise CliError(f"{wheel.name} could not be installed:\n{tail}", code="install_failed")


def _interpreter() -> Path:
    """The active virtual environment's, the one of this folder, or the one that runs this command."""
    active = os.environ.get("VIRTUAL_ENV")
    for folder in (Path(active) if active else None, Path(".venv")):
        if folder is not None and (folder / "bin" / "python").exists():
            return (folder / "bin" / "python").absolute()
    return Path(sys.executable)
