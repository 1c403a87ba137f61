"""Builds the two artefacts of an environment in memory, as `prime push` would send them."""

import base64
import gzip
import hashlib
import io
import tarfile
import zipfile
from dataclasses import dataclass

from trainer.contracts.packages import content_hash


@dataclass(frozen=True)
class Package:
    name: str
    version: str
    wheel: bytes
    source: bytes
    content_hash: str

    @property
    def module(self) -> str:
        return self.name.replace("-", "_")

    @property
    def wheel_filename(self) -> str:
        return f"{self.module}-{self.version}-py3-none-any.whl"

    def declaration(self, artefact: bytes, filename: str, **told: object) -> dict:
        """The body that announces one artefact."""
        return {
            "content_hash": self.content_hash,
            "filename": filename,
            "sha256": hashlib.sha256(artefact).hexdigest(),
            "semantic_version": self.version,
            "metadata": {
                "description": f"What {self.name} is for.",
                "tags": ["digits"],
                "dependencies": ["verifiers>=0.4"],
                **told,
            },
            "runtime_hint": "VERIFIERS_V1",
        }

    def wheel_declaration(self) -> dict:
        return self.declaration(self.wheel, self.wheel_filename) | {"size": len(self.wheel)}

    def source_declaration(self, **told: object) -> dict:
        """`told` goes into the metadata, as the commit does."""
        return self.declaration(self.source, f"{self.name}-{self.version}-{self.content_hash[:8]}.tar.gz", **told)


def build_package(
    name: str = "digit-sum",
    version: str = "0.1.0",
    *,
    content: str = "x = 1\n",
    requires: str = "",
    readme: str = "",
    tool: str = "",
) -> Package:
    """A package whose only module holds `content`, and whose wheel wants `requires`. `tool` stands at the end of its project."""
    module = name.replace("-", "_")
    files = {
        "README.md": (readme or f"# {name}\n").encode(),
        f"{module}/__init__.py": content.encode(),
        "pyproject.toml": f'[project]\nname = "{name}"\nversion = "{version}"\n{tool}'.encode(),
    }
    return Package(
        name,
        version,
        _wheel(module, name, version, files, requires),
        _source(files),
        content_hash({path: [data] for path, data in files.items()}),
    )


def _wheel(module: str, name: str, version: str, files: dict[str, bytes], requires: str) -> bytes:
    info = f"{module}-{version}.dist-info"
    required = f"Requires-Dist: {requires}\n" if requires else ""
    members = {
        f"{module}/__init__.py": files[f"{module}/__init__.py"],
        f"{info}/METADATA": f"Metadata-Version: 2.3\nName: {name}\nVersion: {version}\n{required}".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    rows = [f"{path},sha256={_record_hash(data)},{len(data)}\n" for path, data in members.items()]
    members[f"{info}/RECORD"] = "".join([*rows, f"{info}/RECORD,,\n"]).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in members.items():
            archive.writestr(zipfile.ZipInfo(path, (2026, 1, 1, 0, 0, 0)), data)
    return packed.getvalue()


def _record_hash(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def _source(files: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", fileobj=packed, mode="wb", mtime=0) as raw, tarfile.open(fileobj=raw, mode="w") as archive:
        for path, data in sorted(files.items()):
            member = tarfile.TarInfo(path)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return packed.getvalue()
