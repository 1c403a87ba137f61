"""An environment's folder, as `prime push` sees it: what pyproject.toml says, the wheel, the source archive, the content hash.

Builds run on the author's machine with the author's own code; nothing here is trusted by the server, which checks again.
Knows nothing of HTTP.
"""

import gzip
import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from primecli.output import CliError
from trainer.contracts.packages import allows_prereleases, source_files, tree_hash
from trainer.contracts.secret_scan import scan

BUILD_TIMEOUT_S = 300
SCAN_CHUNK_BYTES = 64 * 1024
ARCHIVE_WARN_BYTES = 250 * 1024 * 1024
METADATA_PATH = Path(".prime") / ".env-metadata.json"
_V1_FLOOR = re.compile(r"^verifiers\s*(?:\[[^\]]*\])?\s*(?:>=|==|~=|>)\s*(\d+)\.(\d+)", re.IGNORECASE)


@dataclass(frozen=True)
class Project:
    """The `[project]` table and the folder that it describes."""

    root: Path
    name: str
    version: str
    table: dict[str, Any]
    backend: str
    allows_prereleases: bool = False

    @property
    def metadata(self) -> dict[str, Any]:
        """What both artefacts carry (wire: wheels, versions)."""
        return {
            "description": str(self.table.get("description", "")),
            "tags": [str(tag) for tag in self.table.get("keywords") or self.table.get("tags") or []],
            "license": _license(self.table.get("license")),
            "dependencies": self.dependencies,
            "python_requires": str(self.table.get("requires-python", "")),
        }

    @property
    def dependencies(self) -> list[str]:
        return [str(line) for line in self.table.get("dependencies", [])]

    @property
    def runtime_hint(self) -> str | None:
        """Which generation of the library the package is written for, read off its lower bound."""
        for line in self.dependencies:
            if match := _V1_FLOOR.match(line):
                return "VERIFIERS_V1" if (int(match[1]), int(match[2])) >= (0, 2) else "VERIFIERS_V0"
        return None


@dataclass(frozen=True)
class Artefact:
    """One file to upload."""

    path: Path
    filename: str
    sha256: str
    size_bytes: int

    @classmethod
    def of(cls, path: Path, filename: str | None = None) -> "Artefact":
        with path.open("rb") as stream:
            digest = hashlib.file_digest(stream, "sha256").hexdigest()
        return cls(path, filename or path.name, digest, path.stat().st_size)


def read_project(root: Path) -> Project:
    """The project in `root`. Every way in which it is no environment is named."""
    path = root / "pyproject.toml"
    if not path.is_file():
        raise CliError(f"no pyproject.toml in {root}", hint="give the folder of the environment: prime push PATH")
    try:
        text = path.read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise CliError(f"{path}: {error}") from error
    table = document.get("project", {})
    for field in ("name", "version"):
        if not isinstance(table.get(field), str):
            raise CliError(f"{path}: [project].{field} is missing")
    if not any(path.suffix == ".py" for path in source_files(root)):
        raise CliError(f"no Python code in {root}: need *.py at its root, or a package folder")
    backend = str(document.get("build-system", {}).get("build-backend", "hatchling.build"))
    return Project(root, table["name"], table["version"], table, backend, allows_prereleases(text))


def bump_patch(root: Path) -> str:
    """Raise the last number of `[project].version` in pyproject.toml and return the new version. The rest stays as written."""
    path = root / "pyproject.toml"
    text = path.read_text(encoding="utf-8")
    current = read_project(root).version
    match = re.fullmatch(r"(.*?)(\d+)", current)
    if match is None:
        raise CliError(f"{path}: version '{current}' does not end in a number; raise it by hand")
    raised = f"{match[1]}{int(match[2]) + 1}"
    spelled = re.compile(rf"""^(\s*version\s*=\s*["']){re.escape(current)}(["'])""", re.MULTILINE)
    replaced, count = spelled.subn(rf"\g<1>{raised}\g<2>", text, count=1)
    if not count:
        raise CliError(f'{path}: found no line with version = "{current}"; raise it by hand')
    path.write_text(replaced, encoding="utf-8")
    return raised


def build_wheel(project: Project) -> Artefact:
    """A fresh wheel in `dist/`, which is emptied first, so that nothing stale can be sent."""
    dist = project.root / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    command = [*_build_command(project.backend), str(dist)]
    try:
        done = subprocess.run(command, cwd=project.root, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise CliError(f"building the wheel took longer than {BUILD_TIMEOUT_S} s") from error
    wheels = sorted(dist.glob("*.whl")) if dist.is_dir() else []
    if done.returncode != 0 or len(wheels) != 1:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise CliError(f"the wheel could not be built ({' '.join(command[:4])} …):\n{tail}", code="build_failed")
    return Artefact.of(wheels[0])


def _build_command(backend: str) -> list[str]:
    """hatchling comes with this command and needs no network; any other backend is fetched by a build front end."""
    if backend == "hatchling.build":
        return [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory"]
    uv = shutil.which("uv")
    if uv:
        return [uv, "build", "--wheel", "--out-dir"]
    return [sys.executable, "-m", "build", "--wheel", "--outdir"]


def build_source(project: Project, content_hash: str) -> Artefact:
    """The source archive in `dist/`: regular files, sorted, without owner and time, so that equal trees give equal bytes."""
    path = project.root / "dist" / f"{project.name}-{project.version}-{content_hash[:8]}.tar.gz"
    path.parent.mkdir(exist_ok=True)
    with (
        path.open("wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for file in source_files(project.root):
            content = file.read_bytes()
            member = tarfile.TarInfo(file.relative_to(project.root).as_posix())
            member.size, member.mode = len(content), 0o644
            archive.addfile(member, io.BytesIO(content))
    return Artefact.of(path)


def source_hash(project: Project) -> str:
    return tree_hash(project.root)


def refuse_secrets(project: Project) -> None:
    """Raises before anything is sent, naming file and line of each key that was left in the source."""
    problems = []
    for path in source_files(project.root):
        name = path.relative_to(project.root).as_posix()
        with path.open("rb") as stream:
            findings = scan(iter(partial(stream.read, SCAN_CHUNK_BYTES), b""))
        problems += [(f"{name}:{finding.line}", finding.kind) for finding in findings]
    if problems:
        hint = "take them out and revoke them; a line that only looks like a key passes with `rootstock: not-a-secret` on it"
        raise CliError(
            "the source holds keys, which everybody who may read it could use", code="secret_found", hint=hint, fields=problems
        )


def write_push_record(root: Path, record: dict[str, Any]) -> None:
    """`.prime/.env-metadata.json`: where this folder was pushed to, or pulled from."""
    path = root / METADATA_PATH
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


def read_push_record(root: Path) -> dict[str, Any]:
    try:
        found = json.loads((root / METADATA_PATH).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise CliError(f"{root / METADATA_PATH}: {error}") from error
    return found if isinstance(found, dict) else {}


def unpack_source(archive: Path, target: Path) -> int:
    """Extract a source archive into an empty or absent folder and return the number of files. Links, devices and names that
    leave the folder are refused before anything is written."""
    if target.exists() and any(target.iterdir()):
        raise CliError(f"{target} is not empty", hint="name another folder: prime pull OWNER/NAME DIR")
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target, prefix=".pull-") as scratch, tarfile.open(archive, "r:gz") as opened:
        members = opened.getmembers()
        try:
            opened.extractall(scratch, members=members, filter="data")
        except tarfile.FilterError as error:
            raise CliError(f"the archive was refused: {error}", code="unsafe_archive") from error
        for entry in Path(scratch).iterdir():
            entry.rename(target / entry.name)
    return sum(member.isreg() for member in members)


def _license(value: Any) -> str:
    if isinstance(value, dict):
        return str(value.get("text") or value.get("file") or "")
    return str(value or "")
