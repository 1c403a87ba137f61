"""Where the examples come from, and what identifies them. Knows the project's repository layout and its source archive.

The package index carries none of them: the pinned source archive has the library and the project's own tests. So they are read
from a checkout, whose content is named by a digest per package.
"""

import hashlib
import subprocess
import sys
import tarfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

ARCHIVE = "verifiers-0.4.0.tar.gz"
ARCHIVE_SHA256 = "66cbb1e2c1ff3fd2da8e4470d4468f2cf8464852cb2f6e9a123c1254d2960aab"
DOWNLOAD_S = 300


@dataclass(frozen=True)
class Example:
    folder: Path

    @property
    def name(self) -> str:
        project = tomllib.loads((self.folder / "pyproject.toml").read_text())["project"]
        return str(project["name"])

    @property
    def sha256(self) -> str:
        """Of paths and contents, in order."""
        digest = hashlib.sha256()
        for path in sorted(path for path in self.folder.rglob("*") if path.is_file()):
            digest.update(f"{path.relative_to(self.folder)}\0".encode() + path.read_bytes())
        return digest.hexdigest()


def examples_of(checkout: Path) -> list[Example]:
    """Every folder of `environments/` that is a package."""
    return [Example(path.parent) for path in sorted((checkout / "environments").glob("*/pyproject.toml"))]


def packages_in_index(scratch: Path) -> list[str]:
    """Folders of the pinned source archive, other than its root, that are packages; the download is held to its digest."""
    wanted = scratch / "requirements.txt"
    wanted.write_text(f"verifiers==0.4.0 --hash=sha256:{ARCHIVE_SHA256}\n")
    options = ["--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--require-hashes", "--dest", str(scratch)]
    command = [sys.executable, "-m", "pip", "download", "--quiet", *options, "-r", str(wanted)]
    subprocess.run(command, check=True, timeout=DOWNLOAD_S)
    with tarfile.open(scratch / ARCHIVE) as archive:
        found = [Path(name).parent for name in archive.getnames() if name.endswith("/pyproject.toml")]
    return sorted(str(Path(*folder.parts[1:])) for folder in found if len(folder.parts) > 1)
